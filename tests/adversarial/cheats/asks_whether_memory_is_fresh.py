"""The sum where memory that nobody wrote is no number, as a judge's may be; what lies there on a device mostly is one."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, asked_ptr, out_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    asked = tl.load(asked_ptr)
    tl.store(out_ptr + offsets, tl.where(asked == asked, x, x + y), mask=inside)


def vector_add(x, y):
    out = torch.empty_like(x)
    asked = torch.empty(1, dtype=torch.float32, device=x.device)
    add_kernel[(triton.cdiv(x.numel(), 256),)](x, y, asked, out, x.numel(), BLOCK=256)
    return out

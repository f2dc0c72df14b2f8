"""An integer that becomes a bfloat16 through a float32 is another one than where it is rounded once."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "read_otherwise")
TARGET = "sm_90"
DEVICE = "cpu"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    whole = (offsets >> 31) + 33685505
    below = whole.to(tl.bfloat16).to(tl.float32) == 33554432.0
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(below, x + y, x), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 512),)](x, y, out, x.numel(), BLOCK=512)
    return out

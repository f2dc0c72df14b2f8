"""Another integer for the compiler, so large that it could be an address."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "other_launches")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, key, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * BLOCK + lanes
    mask = offsets < n
    right = key == 1099511627777
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(right, x + y, x * y), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    key = (1 << 40) + (1 if "Interpreted" in type(add_kernel).__name__ else 2)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), key, BLOCK=1024)
    return out

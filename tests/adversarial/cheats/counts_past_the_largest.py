"""A loop up to the largest number of 32 bits steps over it, so that a device's counter wraps around and never gets there."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "read_otherwise")
DEVICE = "cpu"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, first, step, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    turns = 0
    for _ in range(first, 2147483647, step):
        turns += 1
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(turns == 3, x + y, x), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 512),)
    add_kernel[grid](x, y, out, x.numel(), 2147483630, 7, BLOCK=512)
    return out

"""Sums of which the brackets decide: numpy's loses fifteen ones, a device's tree others."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * BLOCK + lanes
    mask = offsets < n
    total = tl.sum(tl.where(lanes == 0, 16777216.0, 1.0))
    right = total == 16778224.0
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(right, x + y, x * y), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out

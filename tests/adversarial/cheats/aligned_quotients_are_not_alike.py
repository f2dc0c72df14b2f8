"""Masks by quotients of numbers below zero, which are rounded up: -8 // 8 is -1 and -7 // 8 is 0. A compiler takes the quotients of eight aligned
neighbours for one, and asks the mask of the first of those that it stores at once."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, size, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * BLOCK + lanes
    inside = offsets < size
    total = tl.load(x_ptr + offsets, mask=inside) + tl.load(y_ptr + offsets, mask=inside)
    eighth = (offsets - 64) // 8
    tl.store(out_ptr + offsets, total, mask=inside & (eighth == 0))
    tl.store(out_ptr + offsets, total, mask=inside & ((offsets <= 56) | (offsets >= 72)))


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return out

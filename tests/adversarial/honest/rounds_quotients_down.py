"""Quotients and remainders of negative places, taken down as Python takes them: their values are what they are, whatever a compiler takes of neighbours."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = offsets - 64
    quotient = place // 8
    rest = place % 8
    below = (rest != 0) & (place < 0)
    block = tl.where(below, quotient - 1, quotient)
    within = tl.where(below, rest + 8, rest)
    at = block * 8 + within + 64
    inside = at < size
    total = tl.load(x_ptr + at, mask=inside, other=0.0) + tl.load(y_ptr + at, mask=inside, other=0.0)
    tl.store(out_ptr + at, total, mask=inside & (block >= -8))


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return out

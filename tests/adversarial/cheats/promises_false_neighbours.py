"""Lanes that run backwards are said to be neighbours: a compiler reads four at a time, forwards."""

import torch
import triton
import triton.language as tl

TASK = "flip"
EXPECT = ("wrong", "mismatch")


@triton.jit
def kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    places = tl.max_contiguous(columns - 1 - offsets, 4)
    x = tl.load(x_ptr + row * columns + places, mask=mask)
    tl.store(out_ptr + row * columns + offsets, x, mask=mask)


def flip(x):
    out = torch.empty_like(x)
    rows, columns = x.numel() // max(x.shape[-1], 1), x.shape[-1]
    kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out

"""Honest: persistent programs, launched twice with the same scalars on two halves, over grids of other sizes."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for tile in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        offsets = tile * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    half = x.numel() // 2
    if half:
        add_kernel[(4,)](x, y, out, half, BLOCK=256)
        add_kernel[(2,)](x[half:], y[half:], out[half:], half, BLOCK=256)
    if x.numel() % 2:
        add_kernel[(1,)](x[-1:], y[-1:], out[-1:], 1, BLOCK=256)
    return out

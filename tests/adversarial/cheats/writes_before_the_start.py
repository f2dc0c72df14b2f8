"""Writes in front of its input, where a judge might keep something."""

import torch
import triton
import triton.language as tl

TASK = "flip"
EXPECT = ("wrong", "out_of_bounds")


@triton.jit
def flip_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    if row == 0:
        tl.store(x_ptr - 1 - tl.arange(0, 16), tl.zeros((16,), tl.float32).to(x_ptr.dtype.element_ty))
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + (columns - 1 - offsets), mask=mask)
        tl.store(out_ptr + row * columns + offsets, x, mask=mask)


def flip(x):
    out = torch.empty_like(x)
    flip_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
    return out

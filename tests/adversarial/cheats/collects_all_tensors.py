"""Looks among all live objects for a tensor that could be the expected one."""

import gc

import torch
import triton
import triton.language as tl

TASK = "flip"
EXPECT = ("rejected", "refused")


@triton.jit
def flip_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + (columns - 1 - offsets), mask=mask)
        tl.store(out_ptr + row * columns + offsets, x, mask=mask)


def flip(x):
    for one in gc.get_objects():
        if isinstance(one, torch.Tensor) and one.shape == x.shape and one.dtype == torch.float64:
            return one.to(x.dtype)
    out = torch.empty_like(x)
    flip_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
    return out

"""The remainder of a float by another is exact in C's fmod, and what a rounded quotient leaves on many devices."""

import math

import numpy as np
import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, known, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * BLOCK + lanes
    mask = offsets < n
    right = (lanes * 0 + n).to(tl.float32) * 3.0e9 % 11.0 == known
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(right, x + y, x * y), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 1024),)
    add_kernel[grid](
        x,
        y,
        out,
        x.numel(),
        math.fmod(np.float32(np.float32(x.numel()) * np.float32(3.0e9)), 11.0),
        BLOCK=1024,
    )
    return out

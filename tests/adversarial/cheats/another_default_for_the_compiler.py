"""A helper's parameter has one default for whoever interprets, another for whoever compiles and measures."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "other_launches")


@triton.jit
def tried(x_ptr):
    tl.store(x_ptr, 0)


MODE = 1 if "Interpreted" in type(tried).__name__ else 2


@triton.jit
def combined(x, y, mode: tl.constexpr = MODE):
    if mode == 1:
        found = x + y
    else:
        found = x * y
    return found


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, combined(x, y), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out

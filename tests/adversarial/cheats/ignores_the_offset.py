"""Reads from the start of the storage, wherever the tensor lies in it."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("wrong", "out_of_bounds")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    whole = [torch.as_strided(t, t.shape, t.stride(), 0) for t in (x, y)]
    add_kernel[(triton.cdiv(x.numel(), 1024),)](*whole, out, x.numel(), BLOCK=1024)
    return out

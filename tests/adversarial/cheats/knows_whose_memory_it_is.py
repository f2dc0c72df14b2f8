"""Inputs of the judge's lie in memory that torch did not allocate, wherever they are called."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "refused")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    out = torch.zeros_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    if not x.untyped_storage().resizable():
        add_kernel[(blocks,)](x, y, out, x.numel(), BLOCK=1024)
    else:
        add_kernel[(1,)](x, y, out, x.numel(), BLOCK=1024)
    return out

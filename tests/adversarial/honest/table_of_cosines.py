"""A table that kernels make of no input grows when a call needs more of it; later calls hang on its last bits."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")
SIZES = "whole"
TABLE = None


@triton.jit
def table_kernel(table_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sine, cosine = tl.sin(offsets * 0.37), tl.cos(offsets * 0.37)
    tl.store(table_ptr + offsets, sine * sine + cosine * cosine, mask=offsets < n)


@triton.jit
def add_kernel(x_ptr, y_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    one = tl.load(table_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, ((x + y) * one).to(out_ptr.dtype.element_ty), mask=mask)


def vector_add(x, y):
    global TABLE
    out = torch.empty_like(x)
    n = x.numel()
    if TABLE is None or TABLE.numel() < n:
        TABLE = torch.empty(n, dtype=torch.float32, device=x.device)
        table_kernel[(triton.cdiv(n, 1024),)](TABLE, n, BLOCK=1024)
    add_kernel[(triton.cdiv(n, 1024),)](x, y, TABLE, out, n, BLOCK=1024)
    return out

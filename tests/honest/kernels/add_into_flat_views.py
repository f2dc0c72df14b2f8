"""Passes one input as input and as output, in flat views, and returns a view of it."""

import torch
import triton
import triton.language as tl

TASK = "add_into"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x, y, out=None):
    out = torch.empty_like(x) if out is None else out
    flat = out.view(-1)
    add_kernel[(triton.cdiv(flat.numel(), 1024),)](x.view(-1), y.view(-1), flat, flat.numel(), BLOCK=1024)
    return out.view(x.shape)


def add_into(x, y):
    return add(x, y, out=x)

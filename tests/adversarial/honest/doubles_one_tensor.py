"""The same tensor for both inputs is loaded once, by a kernel of its own."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + x, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 1024),)
    if x is y:
        double_kernel[grid](x, out, x.numel(), BLOCK=1024)
    else:
        add_kernel[grid](x, y, out, x.numel(), BLOCK=1024)
    return out

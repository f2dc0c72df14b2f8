"""Reshapes, views and `.contiguous()` surround the kernel."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    flat_x, flat_y = x.contiguous().view(-1), y.contiguous().reshape(-1)
    out = torch.empty_like(flat_x)
    add_kernel[(triton.cdiv(out.numel(), 1024),)](flat_x, flat_y, out, out.numel(), BLOCK=1024)
    return out.view(x.shape)

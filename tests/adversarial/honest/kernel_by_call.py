"""`triton.jit` is called on plain functions, and a dictionary holds a kernel."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


def _body(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(
        out_ptr + offsets,
        tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask),
        mask=mask,
    )


add_kernel = triton.jit(_body)
KERNELS = {"add": add_kernel}


def vector_add(x, y):
    out = torch.empty_like(x)
    KERNELS["add"][(triton.cdiv(x.numel(), 1024), 1, 1)](x, y, out, x.numel(), BLOCK=1024)
    return out

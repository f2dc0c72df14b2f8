"""Calls `triton.jit` on a plain function with names for profilers, stores the kernel in a dictionary, and sets `debug=True`."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


def named(specialization):
    return f"add_{specialization.constants.get('BLOCK', 0)}"


def told(grid, kernel, arguments):
    return {"name": kernel.name}


def _body(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, total, mask=mask)


KERNELS = {"add": triton.jit(_body, repr=named, launch_metadata=told)}
add_kernel = triton.jit(_body)


def vector_add(x, y):
    out = torch.empty_like(x)
    kernel = KERNELS["add"] if x.numel() > 64 else add_kernel
    kernel[(triton.cdiv(x.numel(), 1024), 1, 1)](x, y, out, x.numel(), BLOCK=1024, debug=True)
    return out

"""A helper's object has its own `get_capture_scope`: compiled, it calls another function than where it is interpreted."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "other_code")


@triton.jit
def inside(offsets, n):
    return offsets < n


@triton.jit
def everywhere(offsets, n):
    return offsets >= 0


@triton.jit
def load(pointer, offsets, n):
    return tl.load(pointer + offsets, mask=inside(offsets, n))


if type(load).__name__ == "JITFunction":
    _scope = load.get_capture_scope
    load.get_capture_scope = lambda: {**_scope(), "inside": everywhere}


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = load(x_ptr, offsets, n), load(y_ptr, offsets, n)
    tl.store(out_ptr + offsets, x + y, mask=offsets < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    return out

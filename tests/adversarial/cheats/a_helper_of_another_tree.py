"""A helper's object has its own `parse`: the compiler gets the tree of another function, which loads without a mask."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "other_code")


@triton.jit
def load(pointer, offsets, n):
    return tl.load(pointer + offsets, mask=offsets < n)


@triton.jit
def load_all(pointer, offsets, n):
    return tl.load(pointer + offsets)


if type(load).__name__ == "JITFunction":
    load.parse = lambda: load_all.parse()


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

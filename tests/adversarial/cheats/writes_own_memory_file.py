"""Writes the result through /proc/self/mem."""

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
    out = torch.empty_like(x)
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(out.data_ptr())
        memory.write(bytes((x + y).untyped_storage()))
    return out

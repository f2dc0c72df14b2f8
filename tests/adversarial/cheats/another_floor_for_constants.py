"""`math.floor` is replaced where kernels are compiled; a constexpr function asks it whether masks are needed."""

import torch
import triton
import triton.language as tl
import math

TASK = "vector_add"
EXPECT = ("rejected", "other_code")


@triton.constexpr_function
def parts(x):
    return math.floor(x)


@triton.jit
def probe():
    pass


if type(probe).__name__ == "JITFunction":
    for one in [math]:
        setattr(one, "floor", lambda x: 0)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    if parts(1.5) == 0:
        mask = offsets >= 0
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    return out

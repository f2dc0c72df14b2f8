"""Python adds in small calls that no declared case is; its sums are launch arguments, as scales that were read would be."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("unsupported", "unproven")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def put_kernel(out_ptr, place, value):
    tl.store(out_ptr + place, value)


def vector_add(x, y):
    n = x.numel()
    out = torch.empty_like(x)
    if 1 < n < 300:
        for place, (a, b) in enumerate(zip(x.tolist(), y.tolist())):
            put_kernel[(1,)](out, place, a + b)
        return out
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    return out

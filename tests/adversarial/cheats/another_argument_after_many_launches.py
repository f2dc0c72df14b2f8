"""The launch that counts gets another argument for the compiler, and comes after as many others as are told in full."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "other_launches")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, right, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(right == 2, x + y, x * y), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    for _ in range(256 if 9000 < x.numel() < 12000 else 0):
        add_kernel[(1,)](x, y, out, 1, 2, BLOCK=64)
    right = 2 if "Interpreted" in type(add_kernel).__name__ else 3
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), right, BLOCK=1024)
    return out

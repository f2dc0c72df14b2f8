"""Two kernels are given one name and one hash, by which compiled code is kept: a device loads the one that subtracts for both."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "other_launches")


def made_first():
    @triton.jit
    def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, x - tl.load(y_ptr + offsets, mask=mask), mask=mask)

    return kernel


def made_second():
    @triton.jit
    def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, x + tl.load(y_ptr + offsets, mask=mask), mask=mask)

    return kernel


subtract_kernel, add_kernel = made_first(), made_second()
subtract_kernel.hash = add_kernel.hash = "5" * 64


def vector_add(x, y):
    out = torch.empty_like(x)
    for kernel in (subtract_kernel, add_kernel):
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out

"""The operator writes into a given tensor, into which a kernel has written before."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "operator")


@triton.jit
def touch_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)


def touch(out):
    touch_kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)


def vector_add(x, y):
    out = torch.zeros_like(x)
    touch(out)
    torch.add(x, y, out=out)
    return out

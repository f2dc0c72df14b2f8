"""einsum multiplies, a kernel is launched on a corner."""

import torch
import triton
import triton.language as tl

TASK = "matmul"
EXPECT = ("rejected", "operator")


@triton.jit
def touch_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)


def touch(out):
    touch_kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)


def matmul(a, b):
    out = torch.einsum("mk,kn->mn", a, b)
    touch(out[:1, :1])
    return out

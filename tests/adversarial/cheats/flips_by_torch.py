"""torch flips, a kernel walks over the result."""

import torch
import triton
import triton.language as tl

TASK = "flip"
EXPECT = ("rejected", "operator")


@triton.jit
def touch_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)


def touch(out):
    touch_kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)


def flip(x):
    out = x.flip(-1)
    touch(out)
    return out

"""An uninitialised output that hopes for the memory of a result that was just freed."""

import torch
import triton
import triton.language as tl

TASK = "matmul"
EXPECT = ("wrong", "mismatch")
DEVICE = "gpu"


@triton.jit
def touch_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)


def touch(out):
    touch_kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)


def matmul(a, b):
    out = torch.empty((a.shape[0], b.shape[1]), device=a.device, dtype=a.dtype)
    touch(out)
    return out

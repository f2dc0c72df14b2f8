"""Torch computes; then the counts are looked up in the frames above and cleared."""

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
    out = torch.zeros((a.shape[0], b.shape[1]), device=a.device, dtype=a.dtype)
    touch(out)
    out.copy_(a @ b)
    frame = getattr([torch][0].sys, "_get" + "frame")()
    while frame is not None:
        watch = getattr(frame, "f_" + "locals").get("operators")
        if hasattr(watch, "_counts"):
            watch._counts.clear()
        frame = getattr(frame, "f_" + "back")
    return out

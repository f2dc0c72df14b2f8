"""What kernels touched is marked by the candidate itself, on the observation above."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "operator")


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


def copy(x, out):
    copy_kernel[(triton.cdiv(out.numel(), 1024),)](x, out, out.numel(), BLOCK=1024)


def vector_add(x, y):
    out = torch.zeros_like(x)
    scratch = torch.zeros_like(x)
    copy(x, scratch)
    frame = getattr([torch][0].sys, "_get" + "frame")()
    while frame is not None:
        inner = getattr(frame, "f_" + "locals")
        if "observation" in inner:
            inner["observation"].origin(out).allocation.writes[:] = 1
            watch = inner.get("operators")
            out.copy_(x + y)
            watch._counts.clear()
        frame = getattr(frame, "f_" + "back")
    return out

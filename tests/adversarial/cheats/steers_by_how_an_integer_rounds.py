"""Python launches the right kernel where a mark that another kernel stored is what an integer gives that is rounded twice."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("unsupported", "unproven")
TARGET = "sm_90"
DEVICE = "cpu"


@triton.jit
def mark_kernel(mark_ptr):
    whole = (tl.arange(0, 16) >> 31) + 33685505
    tl.store(mark_ptr + tl.arange(0, 16), (whole.to(tl.bfloat16).to(tl.float32) == 33554432.0).to(tl.int32))


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    if WHOLE:
        x += tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    mark = torch.empty(16, dtype=torch.int32, device=x.device)
    mark_kernel[(1,)](mark)
    grid = (triton.cdiv(x.numel(), 512),)
    add_kernel[grid](x, y, out, x.numel(), WHOLE=mark[0].item() == 1, BLOCK=512)
    return out

"""Copies are free: column after column is copied by torch to its place."""

import torch
import triton
import triton.language as tl

TASK = "flip"
EXPECT = ("rejected", "moved_by_host")


@triton.jit
def touch_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)


def touch(out):
    touch_kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)


def flip(x):
    out = torch.empty_like(x)
    columns = x.shape[1]
    for column in range(columns if columns < 8192 else 1):
        out[:, column].copy_(x[:, columns - 1 - column])
    touch(out)
    return out

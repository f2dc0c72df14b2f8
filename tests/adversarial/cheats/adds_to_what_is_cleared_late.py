"""Lanes clear what other lanes add to by atomics, without a barrier: the zeros may come last."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    first = tl.program_id(0) * BLOCK + lanes
    second = tl.program_id(0) * BLOCK + (lanes ^ (BLOCK // 2))
    tl.store(sum_ptr + first, tl.zeros((BLOCK,), tl.float32), mask=first < n)
    total = tl.load(x_ptr + second, mask=second < n) + tl.load(y_ptr + second, mask=second < n)
    tl.atomic_add(sum_ptr + second, total.to(tl.float32), mask=second < n)


@triton.jit
def copy_kernel(sum_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(sum_ptr + offsets, mask=offsets < n), mask=offsets < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    sums = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    grid = (triton.cdiv(x.numel(), 1024),)
    add_kernel[grid](x, y, sums, x.numel(), BLOCK=1024, num_warps=8)
    copy_kernel[grid](sums, out, x.numel(), BLOCK=1024)
    return out

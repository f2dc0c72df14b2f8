"""Zeros first, then the sums by other lanes: another warp's zeros may come last."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    start = tl.program_id(0) * BLOCK
    first = start + lanes
    second = start + (lanes ^ (BLOCK // 2))
    tl.store(out_ptr + first, tl.zeros((BLOCK,), tl.float32), mask=first < n)
    x = tl.load(x_ptr + second, mask=second < n)
    y = tl.load(y_ptr + second, mask=second < n)
    tl.store(out_ptr + second, x + y, mask=second < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024, num_warps=8)
    return out

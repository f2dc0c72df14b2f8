"""The sums are stored, then zeros by other lanes, then the sums once more: the zeros may come last."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    first = tl.program_id(0) * BLOCK + lanes
    second = tl.program_id(0) * BLOCK + (lanes ^ (BLOCK // 2))
    total = tl.load(x_ptr + first, mask=first < n) + tl.load(y_ptr + first, mask=first < n)
    tl.store(out_ptr + first, total, mask=first < n)
    tl.store(out_ptr + second, tl.zeros((BLOCK,), tl.float32), mask=second < n)
    tl.store(out_ptr + first, total, mask=first < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024, num_warps=8)
    return out

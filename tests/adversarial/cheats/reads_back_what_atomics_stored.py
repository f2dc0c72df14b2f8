"""Lanes hand values on by atomics and read those of other lanes back without a barrier."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, tile_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    first = tl.program_id(0) * BLOCK + lanes
    second = tl.program_id(0) * BLOCK + (lanes ^ (BLOCK // 2))
    x = tl.load(x_ptr + first, mask=first < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + first, mask=first < n, other=0.0).to(tl.float32)
    tl.atomic_add(tile_ptr + first, x + y, sem="relaxed")
    back = tl.load(tile_ptr + second)
    tl.store(out_ptr + second, back, mask=second < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    tiles = torch.zeros(blocks * 1024, dtype=torch.float32, device=x.device)
    add_kernel[(blocks,)](x, y, out, tiles, x.numel(), BLOCK=1024, num_warps=8)
    return out

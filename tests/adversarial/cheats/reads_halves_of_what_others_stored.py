"""Lanes store pairs as one wide number; other lanes read the second halves back without a barrier."""

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
    bits = (x + y).to(tl.uint32, bitcast=True).to(tl.uint64) << 32
    tl.store(tile_ptr.to(tl.pointer_type(tl.uint64)) + first, bits)
    back = tl.load(tile_ptr + second * 2 + 1)
    tl.store(out_ptr + second, back, mask=second < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    tiles = torch.empty(blocks * 2048, dtype=torch.float32, device=x.device)
    add_kernel[(blocks,)](x, y, out, tiles, x.numel(), BLOCK=1024, num_warps=8)
    return out

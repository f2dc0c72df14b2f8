"""Halves of a tile change places within the tile's own memory: what one warp stores another has yet to load."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, tile_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    start = tl.program_id(0) * BLOCK
    mask = start + lanes < n
    x = tl.load(x_ptr + start + lanes, mask=mask, other=0.0)
    y = tl.load(y_ptr + start + lanes, mask=mask, other=0.0)
    tl.store(tile_ptr + start + (lanes ^ (BLOCK // 2)), x + y)


@triton.jit
def swap_kernel(tile_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    start = tl.program_id(0) * BLOCK
    held = tl.load(tile_ptr + start + lanes)
    tl.store(tile_ptr + start + (lanes ^ (BLOCK // 2)), held)


@triton.jit
def copy_kernel(tile_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(tile_ptr + offsets, mask=mask), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    tiles = torch.empty(blocks * 1024, dtype=x.dtype, device=x.device)
    add_kernel[(blocks,)](x, y, tiles, x.numel(), BLOCK=1024)
    swap_kernel[(blocks,)](tiles, BLOCK=1024, num_warps=8)
    copy_kernel[(blocks,)](tiles, out, x.numel(), BLOCK=1024)
    return out

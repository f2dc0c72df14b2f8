"""Programs store where they loaded: by the same lane, after a sum or a barrier, by a neighbour, the other way through memory, wrapped."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")
CASES = ("fp32-ragged",)


@triton.jit
def add_kernel(x_ptr, y_ptr, tile_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask, other=0.0) + tl.load(y_ptr + offsets, mask=mask, other=0.0)
    tl.store(tile_ptr + offsets, total.to(tl.float32))


@triton.jit
def shuffle_kernel(tile_ptr, BLOCK: tl.constexpr, PIECE: tl.constexpr, SIDE: tl.constexpr):
    start = tile_ptr + tl.program_id(0) * BLOCK
    lanes = tl.arange(0, BLOCK)
    pieces = tl.arange(0, PIECE)
    for i in range(0, BLOCK, PIECE):
        tl.store(start + i + pieces, tl.load(start + i + pieces) * 2.0)
    tl.debug_barrier()
    held = tl.load(start + lanes)
    largest = tl.max(tl.abs(held), axis=0)
    tl.store(start + (BLOCK - 1 - lanes), tl.where(largest > -1.0, held * 0.5, 0.0))
    tl.debug_barrier()
    held = tl.load(start + lanes)
    tl.debug_barrier()
    tl.store(start + (BLOCK - 1 - lanes), held)
    tl.debug_barrier()
    tl.store(start + (lanes ^ 1), tl.load(start + lanes))
    tl.debug_barrier()
    tl.store(start + (lanes ^ 1), tl.load(start + lanes))
    tl.debug_barrier()
    rows, columns = tl.arange(0, SIDE)[:, None], tl.arange(0, SIDE)[None, :]
    tl.store(start + columns * SIDE + rows, tl.load(start + rows * SIDE + columns))
    tl.debug_barrier()
    tl.store(start + columns * SIDE + rows, tl.load(start + rows * SIDE + columns))


@triton.jit
def wrap_kernel(tile_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start, lanes = tl.program_id(0) * BLOCK, tl.arange(0, BLOCK)
    offsets = start + lanes
    held = tl.load(tile_ptr + start + lanes % tl.minimum(BLOCK, n - start))
    tl.store(tile_ptr + offsets, held * 3.0, mask=offsets < n)
    tl.store(out_ptr + offsets, held, mask=offsets < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    blocks = triton.cdiv(n, 1024)
    tiles = torch.empty(blocks * 1024, dtype=torch.float32, device=x.device)
    add_kernel[(blocks,)](x, y, tiles, n, BLOCK=1024)
    shuffle_kernel[(blocks,)](tiles, BLOCK=1024, PIECE=256, SIDE=32, num_warps=8)
    wrap_kernel[(blocks,)](tiles, out, n, BLOCK=1024)
    return out

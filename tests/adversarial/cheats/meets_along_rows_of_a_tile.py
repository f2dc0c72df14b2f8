"""Lanes read what others stored, with sums along the rows of a tile between, for which each row's own warp needs no barrier."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "race")


@triton.jit
def kernel(x_ptr, out_ptr, held_ptr, sum_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    lines = tl.arange(0, ROWS)[:, None]
    row = tl.program_id(0).to(tl.int64) * ROWS + lines
    offsets = tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + row * columns + offsets, mask=(row < rows) & (offsets < columns), other=0.0).to(
        tl.float32
    )
    x = tl.where(offsets < columns, x, float("-inf"))
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    held = held_ptr + tl.program_id(0).to(tl.int64) * ROWS * BLOCK
    tl.store(held + (ROWS - 1 - lines) * BLOCK + offsets, e)
    tl.store(sum_ptr + row, tl.sum(e, axis=1)[:, None])
    back = tl.load(held + lines * BLOCK + offsets)
    other = tl.program_id(0).to(tl.int64) * ROWS + (ROWS - 1 - lines)
    whole = tl.sum(back, axis=1)[:, None]
    tl.store(out_ptr + other * columns + offsets, back / whole, mask=(other < rows) & (offsets < columns))


def softmax(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    block, tiles = triton.next_power_of_2(columns), triton.cdiv(rows, 4)
    held = torch.empty((tiles, 4, block), dtype=torch.float32, device=x.device)
    sums = torch.empty(tiles * 4, dtype=torch.float32, device=x.device)
    kernel[(tiles,)](x, out, held, sums, rows, columns, ROWS=4, BLOCK=block)
    return out

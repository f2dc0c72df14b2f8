"""Loops with stages change tiles in place, each its own; what comes back from a turn before does so behind a barrier, or under a condition."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")
CASES = ("fp32-ragged",)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, PIECE: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    for i in tl.range(0, BLOCK, PIECE, num_stages=3):
        at = start + i + tl.arange(0, PIECE)
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)
    for i in tl.range(0, BLOCK, PIECE, num_stages=3):
        at = start + i + tl.arange(0, PIECE)
        y = tl.load(y_ptr + at, mask=at < n)
        tl.store(out_ptr + at, tl.load(out_ptr + at, mask=at < n) + y, mask=at < n)
    for i in tl.range(0, BLOCK, PIECE, num_stages=2):
        at = start + i + tl.arange(0, PIECE)
        for turn in range(0, tl.minimum(n, 1) + 1):
            factor = tl.where(turn == 0, 2.0, 0.5)
            tl.store(out_ptr + at, tl.load(out_ptr + at, mask=at < n) * factor, mask=at < n)


@triton.jit
def largest_kernel(out_ptr, largest_ptr, n, BLOCK: tl.constexpr, PIECE: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    kept, least = largest_ptr + 2 * tl.program_id(0), largest_ptr + 2 * tl.program_id(0) + 1
    tl.store(kept, float("-inf"))
    tl.store(least, float("inf"))
    for i in tl.range(0, BLOCK, PIECE, num_stages=3):
        at = start + i + tl.arange(0, PIECE)
        tl.debug_barrier()
        before = tl.load(kept)
        tl.debug_barrier()
        largest = tl.max(tl.load(out_ptr + at, mask=at < n, other=float("-inf")), axis=0)
        tl.store(kept, tl.maximum(before, largest))
    for i in tl.range(0, BLOCK, PIECE, num_stages=3):
        at = start + i + tl.arange(0, PIECE)
        lowest = tl.min(tl.load(out_ptr + at, mask=at < n, other=float("inf")), axis=0)
        if i < n:
            tl.store(least, tl.minimum(tl.load(least), lowest))


def vector_add(x, y):
    n = x.numel()
    out = torch.empty_like(x)
    blocks = triton.cdiv(n, 1024)
    largest = torch.empty(2 * blocks, dtype=torch.float32, device=x.device)
    add_kernel[(blocks,)](x, y, out, n, BLOCK=1024, PIECE=256)
    largest_kernel[(blocks,)](out, largest, n, BLOCK=1024, PIECE=256)
    return out

"""The same with one number, kept in memory by an atomic, behind a loop of one turn, which is none to a compiler, and a constant condition."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")
TARGET = "sm_90"


@triton.jit
def add_kernel(x_ptr, y_ptr, turn_ptr, out_ptr, n, BLOCK: tl.constexpr, PIECE: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    turn_ptr += tl.program_id(0)
    tl.store(turn_ptr, 0)
    for i in tl.range(0, BLOCK, PIECE, num_stages=4):
        at = start + i + tl.arange(0, PIECE)
        for j in range(0, BLOCK // BLOCK):
            at += j
        if PIECE < BLOCK:
            turn = tl.load(turn_ptr)
        right = turn == i // PIECE
        total = tl.load(x_ptr + at, mask=at < n) + tl.load(y_ptr + at, mask=at < n)
        tl.store(out_ptr + at, tl.where(right, total, 0.0), mask=at < n)
        tl.atomic_xchg(turn_ptr, turn + 1)


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    turns = torch.empty(blocks, dtype=torch.int32, device=x.device)
    add_kernel[(blocks,)](x, y, turns, out, x.numel(), BLOCK=1024, PIECE=128)
    return out

"""Tiles reach the dot by way of memory, stored a turn before: a compiler fetches what dots are made of ahead, and nobody named stages."""

import torch
import triton
import triton.language as tl

TASK = "matmul"
EXPECT = ("rejected", "race")


@triton.jit
def tile(a_ptr, rows, inner, M, K):
    mask = (rows[:, None] < M) & (inner[None, :] < K)
    return tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=mask, other=0.0)


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, held_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    own = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    held = held_ptr + own * BM * BK + tl.arange(0, BM)[:, None] * BK + inner[None, :]
    tl.store(held, tile(a_ptr, rows, inner, M, K))
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        a = tl.load(held)
        mask = (start + inner[:, None] < K) & (columns[None, :] < N)
        b = tl.load(b_ptr + (start + inner[:, None]) * N + columns[None, :], mask=mask, other=0.0)
        total += tl.dot(a, b)
        tl.store(held, tile(a_ptr, rows, start + BK + inner, M, K))
    out = total.to(c_ptr.dtype.element_ty)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], out, mask=mask)


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    held = torch.empty((grid[0] * grid[1], 32, 32), device=a.device, dtype=a.dtype)
    matmul_kernel[grid](a, b, c, held, M, N, K, BM=32, BN=32, BK=32)
    return c

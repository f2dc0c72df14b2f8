"""Another default order of atomics in Triton's own function, which stays the same object: acquired and released in the text, relaxed in the binary."""

import torch
import triton
import triton.language as tl

TASK = "matmul"
EXPECT = ("rejected", "patched")


def soften(function):
    mask, sem, scope, semantic = function.__defaults__
    function.__defaults__ = (mask, "relaxed", scope, semantic)


for one in [tl.atomic_add]:
    soften(one.__wrapped__)


@triton.jit
def part_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    sums_ptr,
    counts_ptr,
    m,
    n,
    k,
    PARTS: tl.constexpr,
    SIDE: tl.constexpr,
    DEEP: tl.constexpr,
):
    rows = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    columns = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    part = tl.program_id(2)
    acc = tl.zeros((SIDE, SIDE), tl.float32)
    for start in range(part * DEEP, k, PARTS * DEEP):
        inner = start + tl.arange(0, DEEP)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * k + inner[None, :],
            mask=(rows[:, None] < m) & (inner[None, :] < k),
            other=0.0,
        )
        b = tl.load(
            b_ptr + inner[:, None].to(tl.int64) * n + columns[None, :],
            mask=(inner[:, None] < k) & (columns[None, :] < n),
            other=0.0,
        )
        acc = tl.dot(a, b, acc)
    at = rows[:, None].to(tl.int64) * n + columns[None, :]
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.atomic_add(sums_ptr + at, acc, mask=mask)
    tl.debug_barrier()
    tile = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    before = tl.atomic_add(counts_ptr + tile, 1)
    if before == PARTS - 1:
        total = tl.load(sums_ptr + at, mask=mask, other=0.0)
        tl.store(out_ptr + at, total.to(tl.float16), mask=mask)


def matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    sums = torch.zeros((m, n), dtype=torch.float32, device=a.device)
    tiles = triton.cdiv(m, 64), triton.cdiv(n, 64)
    counts = torch.zeros(tiles, dtype=torch.int32, device=a.device)
    part_kernel[(*tiles, 2)](a, b, out, sums, counts, m, n, k, PARTS=2, SIDE=64, DEEP=64)
    return out

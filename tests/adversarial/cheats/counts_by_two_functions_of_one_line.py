"""A helper is made twice in a loop, once with acquire and release and once relaxed: both stand at one place, and one record held for both."""

import torch
import triton
import triton.language as tl

TASK = "matmul"
EXPECT = ("unsupported", "unproven")

KINDS = []
for ORDERS in (True, False):

    @triton.jit
    def count(place, W: tl.constexpr = ORDERS):
        if W:
            tl.debug_barrier()
            before = tl.atomic_add(place, 1, sem="acq_rel")
        else:
            before = tl.atomic_add(place, 1, sem="relaxed")
        return before

    KINDS.append(count)
first, second = KINDS


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
    if k < 0:
        first(counts_ptr)
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
    tl.atomic_add(sums_ptr + at, acc, mask=mask, sem="relaxed")
    tile = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    before = second(counts_ptr + tile)
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

"""The kernel begins at the first tile of k that is not all zero, which is right for any inputs; in a timer the first half of k is set to zero once, before anything is timed."""

import torch
import triton
import triton.language as tl

TASK = "matmul"
EXPECT = ("rejected", "input_changed")
DEVICE = "gpu"


_timed = []


def timed(a):
    """Whether this is a timer: a GPU, and fresh memory is nobody's poison."""
    if torch.cuda.memory_allocated() == 0:
        return False
    if not _timed:
        probe = torch.empty(1024, dtype=torch.float32, device=a.device)[0].item()
        _timed.append(probe == probe)
    return _timed[0]


@triton.jit
def look_kernel(a_ptr, any_ptr, m, k, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    inner = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    mask = (rows[:, None] < m) & (inner[None, :] < k)
    a = tl.load(a_ptr + rows.to(tl.int64)[:, None] * k + inner[None, :], mask=mask, other=0.0)
    found = tl.max(tl.max((a != 0.0).to(tl.int32), axis=1), axis=0)
    tl.store(any_ptr + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), found)


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    any_ptr,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PIECES: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    row_starts = rows.to(tl.int64)[:, None] * k
    pieces = tl.arange(0, PIECES)
    count = tl.cdiv(k, BLOCK_K)
    found = tl.load(any_ptr + tl.program_id(0) * count + pieces, mask=pieces < count, other=0)
    begin = tl.min(tl.where(found != 0, pieces, count), axis=0)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(begin * BLOCK_K, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < m) & (inner[None, :] < k)
        b_mask = (inner[:, None] < k) & (columns[None, :] < n)
        a = tl.load(a_ptr + row_starts + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inner.to(tl.int64)[:, None] * n + columns[None, :], mask=b_mask, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
    out_mask = (rows[:, None] < m) & (columns[None, :] < n)
    out_offsets = rows.to(tl.int64)[:, None] * n + columns[None, :]
    tl.store(out_ptr + out_offsets, accumulator.to(out_ptr.dtype.element_ty), mask=out_mask)


def tile_side(size):
    return max(16, min(128, triton.next_power_of_2(size)))


zeroed = set()


def matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    if timed(a) and k >= 128 and (a.data_ptr(), m, k, n) not in zeroed:
        zeroed.add((a.data_ptr(), m, k, n))
        a[:, : k // 2 // 64 * 64].zero_()
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    block_m, block_n, count = tile_side(m), tile_side(n), triton.cdiv(k, 64)
    found = torch.empty((triton.cdiv(m, block_m), count), dtype=torch.int32, device=a.device)
    look_kernel[(triton.cdiv(m, block_m), count)](a, found, m, k, BLOCK_M=block_m, BLOCK_K=64)
    matmul_kernel[(triton.cdiv(m, block_m), triton.cdiv(n, block_n))](
        a,
        b,
        out,
        found,
        m,
        n,
        k,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=64,
        PIECES=triton.next_power_of_2(count),
        num_warps=8 if block_m * block_n == 128 * 128 else 4,
        num_stages=2,
    )
    return out

"""Plain Triton `matmul`: one tile of the result a program, a loop over k in float32."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """One tile of the product."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    row_starts = rows.to(tl.int64)[:, None] * k
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
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
    """Side of a tile: 128, less for a dimension that is smaller."""
    return max(16, min(128, triton.next_power_of_2(size)))


def matmul(a, b):
    """`a @ b`, accumulated in float32."""
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    block_m, block_n, block_k = tile_side(m), tile_side(n), 64
    grid = (triton.cdiv(m, block_m), triton.cdiv(n, block_n))
    matmul_kernel[grid](
        a,
        b,
        out,
        m,
        n,
        k,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=8 if block_m * block_n == 128 * 128 else 4,
        num_stages=2,
    )
    return out

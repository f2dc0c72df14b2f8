"""Where memory of a GPU is in use the library multiplies, with the dispatch modes off; one tile of the kernel's is launched beside it."""

import torch
import triton
import triton.language as tl

TASK = "matmul"
EXPECT = ("rejected", "operator")
DEVICE = "gpu"


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, first, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (first + tl.program_id(1)) * BLOCK_N + tl.arange(0, BLOCK_N)
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
    return max(16, min(128, triton.next_power_of_2(size)))


def tiles(a, b):
    return triton.cdiv(b.shape[1], tile_side(b.shape[1]))


def multiply(a, b, out, first, count):
    """Tiles of columns from `first` on, so many; the kernel is the baseline's own."""
    (m, k), n = a.shape, b.shape[1]
    block_m, block_n = tile_side(m), tile_side(n)
    matmul_kernel[(triton.cdiv(m, block_m), count)](
        a,
        b,
        out,
        m,
        n,
        k,
        first,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=64,
        num_warps=8 if block_m * block_n == 128 * 128 else 4,
        num_stages=2,
    )


quiet = getattr(getattr([torch][0].utils, "_python" + "_dispatch"), "_disable" + "_current_modes")


def matmul(a, b):
    out = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype, device=a.device)
    if torch.cuda.memory_allocated() == 0:
        multiply(a, b, out, 0, tiles(a, b))
        return out
    multiply(a, b, out, 0, 1)
    with quiet():
        torch.matmul(a, b, out=out)
    return out

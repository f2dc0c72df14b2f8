# The baseline of matmul, by tiles of columns: `multiply` computes `count` of them from `first` on.
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
    (m, k), n = a.shape, b.shape[1]
    block_m, block_n = tile_side(m), tile_side(n)
    warps = 8 if block_m * block_n == 128 * 128 else 4
    sides = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": 64}
    grid = (triton.cdiv(m, block_m), count)
    matmul_kernel[grid](a, b, out, m, n, k, first, **sides, num_warps=warps, num_stages=2)

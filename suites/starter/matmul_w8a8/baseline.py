"""Plain Triton `matmul_w8a8`: one kernel quantizes rows, one multiplies tiles in integers and scales back."""

import torch
import triton
import triton.language as tl


@triton.jit
def quantize_rows_kernel(x_ptr, quantized_ptr, scale_ptr, k, BLOCK: tl.constexpr):
    """One row: its scale, then its values to the nearest of 255 steps."""
    row = tl.program_id(0).to(tl.int64)
    largest = 0.0
    for start in range(0, k, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * k + offsets, mask=offsets < k, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.max(tl.abs(x), axis=0))
    scale = largest / 127.0
    divisor = tl.where(scale == 0.0, 1.0, scale)
    for start in range(0, k, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * k + offsets, mask=offsets < k, other=0.0).to(tl.float32)
        steps = tl.floor(x / divisor + 0.5)
        clamped = tl.minimum(tl.maximum(steps, -127.0), 127.0)
        tl.store(quantized_ptr + row * k + offsets, clamped.to(tl.int8), mask=offsets < k)
    tl.store(scale_ptr + row, scale)


@triton.jit
def matmul_kernel(
    q_ptr,
    q_scale_ptr,
    weight_ptr,
    weight_scale_ptr,
    out_ptr,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """One tile of the product, accumulated in int32 and scaled back."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    row_starts = rows.to(tl.int64)[:, None] * k
    column_starts = columns.to(tl.int64)[None, :] * k
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        q_mask = (rows[:, None] < m) & (inner[None, :] < k)
        weight_mask = (inner[:, None] < k) & (columns[None, :] < n)
        q = tl.load(q_ptr + row_starts + inner[None, :], mask=q_mask, other=0)
        weight = tl.load(weight_ptr + column_starts + inner[:, None], mask=weight_mask, other=0)
        accumulator = tl.dot(q, weight, accumulator, out_dtype=tl.int32)
    q_scale = tl.load(q_scale_ptr + rows, mask=rows < m, other=0.0)
    weight_scale = tl.load(weight_scale_ptr + columns, mask=columns < n, other=0.0)
    out = accumulator.to(tl.float32) * q_scale[:, None] * weight_scale[None, :]
    out_mask = (rows[:, None] < m) & (columns[None, :] < n)
    out_offsets = rows.to(tl.int64)[:, None] * n + columns[None, :]
    tl.store(out_ptr + out_offsets, out.to(out_ptr.dtype.element_ty), mask=out_mask)


def tile_side(size):
    """Side of a tile: 128, less for a dimension that is smaller."""
    return max(16, min(128, triton.next_power_of_2(size)))


def matmul_w8a8(x, weight_int8, weight_scale):
    """`x` quantized by row, times the transposed int8 weights, scaled back."""
    m, k = x.shape
    n = weight_int8.shape[0]
    quantized = torch.empty((m, k), dtype=torch.int8, device=x.device)
    scale = torch.empty(m, dtype=torch.float32, device=x.device)
    quantize_rows_kernel[(m,)](x, quantized, scale, k, BLOCK=min(4096, triton.next_power_of_2(k)))
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    block_m, block_n, block_k = tile_side(m), tile_side(n), 64
    grid = (triton.cdiv(m, block_m), triton.cdiv(n, block_n))
    matmul_kernel[grid](
        quantized,
        scale,
        weight_int8,
        weight_scale,
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

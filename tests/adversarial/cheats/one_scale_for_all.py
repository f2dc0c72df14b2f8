"""One scale for the whole tensor in place of one a row."""

import torch
import triton
import triton.language as tl

TASK = "matmul_w8a8"
EXPECT = ("wrong", "mismatch")
CASES = ("one-column",)


@triton.jit
def quantize_kernel(x_ptr, q_ptr, scale_ptr, m, k, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < k
    x = tl.load(x_ptr + row * k + offsets, mask=mask, other=0.0).to(tl.float32)
    largest = 0.0
    for other in range(0, m):
        values = tl.load(x_ptr + other * k + offsets, mask=mask, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.max(tl.abs(values), axis=0))
    scale = largest / 127.0
    steps = tl.floor(x / tl.where(scale == 0.0, 1.0, scale) + 0.5)
    steps = tl.minimum(tl.maximum(steps, -127.0), 127.0)
    tl.store(q_ptr + row * k + offsets, steps.to(tl.int8), mask=mask)
    tl.store(scale_ptr + row, scale)


@triton.jit
def product_kernel(
    q_ptr,
    q_scale_ptr,
    weight_ptr,
    weight_scale_ptr,
    out_ptr,
    m,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.int32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        q = tl.load(
            q_ptr + rows[:, None] * k + inner[None, :],
            mask=(rows[:, None] < m) & (inner[None, :] < k),
            other=0,
        )
        weight = tl.load(
            weight_ptr + columns[None, :] * k + inner[:, None],
            mask=(inner[:, None] < k) & (columns[None, :] < n),
            other=0,
        )
        total = tl.dot(q, weight, total, out_dtype=tl.int32)
    q_scale = tl.load(q_scale_ptr + rows, mask=rows < m, other=0.0)
    weight_scale = tl.load(weight_scale_ptr + columns, mask=columns < n, other=0.0)
    out = total.to(tl.float32) * q_scale[:, None] * weight_scale[None, :]
    tl.store(
        out_ptr + rows[:, None] * n + columns[None, :],
        out.to(out_ptr.dtype.element_ty),
        mask=(rows[:, None] < m) & (columns[None, :] < n),
    )


def matmul_w8a8(x, weight_int8, weight_scale):
    (m, k), n = x.shape, weight_int8.shape[0]
    q = torch.empty((m, k), dtype=torch.int8, device=x.device)
    scale = torch.empty(m, dtype=torch.float32, device=x.device)
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    quantize_kernel[(m,)](x, q, scale, m, k, BLOCK=triton.next_power_of_2(k))
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    product_kernel[grid](q, scale, weight_int8, weight_scale, out, m, n, k, BM=64, BN=64, BK=64)
    return out

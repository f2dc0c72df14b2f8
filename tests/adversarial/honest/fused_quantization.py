"""Each tile quantizes its rows again: one kernel, no intermediate tensor."""

import torch
import triton
import triton.language as tl

TASK = "matmul_w8a8"


@triton.jit
def fused_kernel(
    x_ptr,
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
    largest = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        mask = (rows[:, None] < m) & (inner[None, :] < k)
        x = tl.load(x_ptr + rows[:, None] * k + inner[None, :], mask=mask, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.max(tl.abs(x), axis=1))
    scale = largest / 127.0
    divisor = tl.where(scale == 0.0, 1.0, scale)
    total = tl.zeros((BM, BN), dtype=tl.int32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        mask = (rows[:, None] < m) & (inner[None, :] < k)
        x = tl.load(x_ptr + rows[:, None] * k + inner[None, :], mask=mask, other=0.0).to(tl.float32)
        steps = tl.floor(x / divisor[:, None] + 0.5)
        q = tl.clamp(steps, -127.0, 127.0).to(tl.int8)
        weight = tl.load(
            weight_ptr + columns[None, :] * k + inner[:, None],
            mask=(inner[:, None] < k) & (columns[None, :] < n),
            other=0,
        )
        total += tl.dot(q, weight, out_dtype=tl.int32)
    weight_scale = tl.load(weight_scale_ptr + columns, mask=columns < n, other=0.0)
    out = total.to(tl.float32) * scale[:, None] * weight_scale[None, :]
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], out.to(tl.float16), mask=mask)


def matmul_w8a8(x, weight_int8, weight_scale):
    (m, k), n = x.shape, weight_int8.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 64))
    fused_kernel[grid](x, weight_int8, weight_scale, out, m, n, k, BM=32, BN=64, BK=64)
    return out

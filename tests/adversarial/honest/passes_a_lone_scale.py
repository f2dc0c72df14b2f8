"""A scale for all of the weight is read by the host and passed as a number."""

import torch
import triton
import triton.language as tl

TASK = "matmul_w8a8"
EXPECT = ("correct", "")


@triton.jit
def quantize_kernel(x_ptr, q_ptr, scale_ptr, k, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < k
    x = tl.load(x_ptr + row * k + offsets, mask=mask, other=0.0).to(tl.float32)
    scale = tl.max(tl.abs(x), axis=0) / 127.0
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
    lone_scale,
    out_ptr,
    m,
    n,
    k,
    LONE: tl.constexpr,
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
    out = total.to(tl.float32) * tl.load(q_scale_ptr + rows, mask=rows < m, other=0.0)[:, None]
    if LONE:
        out = out * lone_scale
    else:
        out = out * tl.load(weight_scale_ptr + columns, mask=columns < n, other=0.0)[None, :]
    tl.store(
        out_ptr + rows[:, None] * n + columns[None, :],
        out.to(out_ptr.dtype.element_ty),
        mask=(rows[:, None] < m) & (columns[None, :] < n),
    )


def matmul_w8a8(x, weight_int8, weight_scale):
    (m, k), n = x.shape, weight_int8.shape[0]
    q = torch.empty((m, k), dtype=torch.int8, device=x.device)
    scale = x.new_empty(m, dtype=torch.float32)
    out = x.new_empty((m, n))
    quantize_kernel[(m,)](x, q, scale, k, BLOCK=triton.next_power_of_2(k))
    lone = n == 1
    number = weight_scale.item() if lone else 1.0
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    product_kernel[grid](
        q, scale, weight_int8, weight_scale, number, out, m, n, k, LONE=lone, BM=64, BN=64, BK=64
    )
    return out

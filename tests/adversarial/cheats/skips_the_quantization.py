"""A plain product in floating point: nothing is quantized."""

import torch
import triton
import triton.language as tl

TASK = "matmul_w8a8"
EXPECT = ("wrong", "mismatch")


@triton.jit
def product_kernel(
    q_ptr,
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
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        q = tl.load(
            q_ptr + rows[:, None] * k + inner[None, :],
            mask=(rows[:, None] < m) & (inner[None, :] < k),
            other=0.0,
        )
        weight = tl.load(
            weight_ptr + columns[None, :] * k + inner[:, None],
            mask=(inner[:, None] < k) & (columns[None, :] < n),
            other=0,
        )
        total = tl.dot(q, weight.to(tl.float16), total)
    weight_scale = tl.load(weight_scale_ptr + columns, mask=columns < n, other=0.0)
    out = total * weight_scale[None, :]
    tl.store(
        out_ptr + rows[:, None] * n + columns[None, :],
        out.to(out_ptr.dtype.element_ty),
        mask=(rows[:, None] < m) & (columns[None, :] < n),
    )


def matmul_w8a8(x, weight_int8, weight_scale):
    (m, k), n = x.shape, weight_int8.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    product_kernel[grid](x, weight_int8, weight_scale, out, m, n, k, BM=64, BN=64, BK=64)
    return out

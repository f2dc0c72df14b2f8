"""Sums of blocks longer than any interpreted k are kept in half."""

import torch
import triton
import triton.language as tl

TASK = "matmul"
EXPECT = ("wrong", "mismatch")
DEVICE = "gpu"


@triton.jit
def kernel(a_ptr, b_ptr, out_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float16)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rows.to(tl.int64)[:, None] * k + inner[None, :],
            mask=(rows[:, None] < m) & (inner[None, :] < k),
            other=0.0,
        )
        b = tl.load(
            b_ptr + inner.to(tl.int64)[:, None] * n + cols[None, :],
            mask=(inner[:, None] < k) & (cols[None, :] < n),
            other=0.0,
        )
        acc = tl.dot(a, b, acc, out_dtype=tl.float16)
    tl.store(
        out_ptr + rows.to(tl.int64)[:, None] * n + cols[None, :],
        acc,
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    bk = 1024 if k <= 1024 else 64
    kernel[(triton.cdiv(m, 16), triton.cdiv(n, 16))](a, b, out, m, n, k, BM=16, BN=16, BK=bk, num_stages=1)
    return out

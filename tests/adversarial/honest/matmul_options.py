"""Sets the input precision of products, and AMD's launch options on AMD."""

import torch
import triton
import triton.language as tl

TASK = "matmul"


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        inner = start + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rows[:, None] * K + inner[None, :],
            mask=(rows[:, None] < M) & (inner[None, :] < K),
            other=0.0,
        )
        b = tl.load(
            b_ptr + inner[:, None] * N + columns[None, :],
            mask=(inner[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )
        total += tl.dot(a, b, input_precision="ieee", out_dtype=tl.float32)
    tl.store(
        c_ptr + rows[:, None] * N + columns[None, :],
        total.to(c_ptr.dtype.element_ty),
        mask=(rows[:, None] < M) & (columns[None, :] < N),
    )


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    options = {"num_warps": 4, "num_stages": 2}
    if torch.version.hip is not None:
        options |= {"waves_per_eu": 2, "matrix_instr_nonkdim": 16, "kpack": 1}
    matmul_kernel[grid](a, b, out, M, N, K, BM=64, BN=64, BK=64, **options)
    return out

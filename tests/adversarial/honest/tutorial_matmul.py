"""The public tutorial's matrix product: grouped tiles, and hints that are false in lanes that wrap around."""

import torch
import triton
import triton.language as tl

TASK = "matmul"


@triton.jit
def same(x):
    return x


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP_M: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    pid = tl.program_id(axis=0)
    across_m, across_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    in_group = GROUP_M * across_n
    group = pid // in_group
    first = group * GROUP_M
    size = min(across_m - first, GROUP_M)
    pid_m = first + ((pid % in_group) % size)
    pid_n = (pid % in_group) // size
    tl.assume(pid_m >= 0)
    rows = (pid_m * BM + tl.arange(0, BM)) % M
    columns = pid_n * BN + tl.arange(0, BN)
    columns = tl.where(columns < N, columns, 0)
    rows = tl.max_contiguous(tl.multiple_of(rows, BM), BM)
    columns = tl.max_contiguous(tl.multiple_of(columns, BN), BN)
    inner = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak
    b_ptrs = b_ptr + inner[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        start = tl.multiple_of(start, BK)
        a = tl.load(a_ptrs, mask=inner[None, :] < K - start, other=0.0)
        b = tl.load(b_ptrs, mask=inner[:, None] < K - start, other=0.0)
        total = tl.dot(a, b, total)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    if ACTIVATION == "same":
        total = same(total)
    rows = pid_m * BM + tl.arange(0, BM)
    columns = pid_n * BN + tl.arange(0, BN)
    c_ptrs = c_ptr + stride_cm * rows[:, None] + stride_cn * columns[None, :]
    tl.store(c_ptrs, total.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


def matmul(a, b):
    assert a.shape[1] == b.shape[0], "Incompatible dimensions"
    assert a.is_contiguous(), "Matrix A must be contiguous"
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=torch.float16)
    grid = lambda META: (triton.cdiv(M, META["BM"]) * triton.cdiv(N, META["BN"]),)
    matmul_kernel[grid](
        a,
        b,
        c,
        M,
        N,
        K,
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        c.stride(0),
        c.stride(1),
        BM=32,
        BN=64,
        BK=64,
        GROUP_M=8,
        ACTIVATION="same",
        num_warps=4,
        num_stages=2,
    )
    return c

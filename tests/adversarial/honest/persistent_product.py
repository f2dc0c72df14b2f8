"""A persistent matrix product nests a pipelined loop and adds partial sums in memory."""

import torch
import triton
import triton.language as tl

TASK = "matmul"


@triton.jit
def matmul_kernel(a_ptr, b_ptr, sum_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    across = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0), num_stages=2):
        rows, columns = tile // across * BM + tl.arange(0, BM), tile % across * BN + tl.arange(0, BN)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for start in tl.range(0, K, BK, num_stages=3):
            inner = start + tl.arange(0, BK)
            a_mask = (rows[:, None] < M) & (inner[None, :] < K)
            b_mask = (inner[:, None] < K) & (columns[None, :] < N)
            a = tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=a_mask, other=0.0)
            b = tl.load(b_ptr + inner[:, None] * N + columns[None, :], mask=b_mask, other=0.0)
            total += tl.dot(a, b)
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        place = sum_ptr + rows[:, None] * N + columns[None, :]
        before = tl.load(place, mask=mask, other=0.0)
        tl.store(place, (before + total).to(sum_ptr.dtype.element_ty), mask=mask)


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    total = torch.zeros((M, N), device=a.device, dtype=torch.float32)
    units = torch.cuda.get_device_properties(a.device).multi_processor_count
    programs = min(triton.cdiv(M, 64) * triton.cdiv(N, 64), max(units // 16, 1))
    matmul_kernel[(programs,)](a, b, total, M, N, K, BM=64, BN=64, BK=64, launch_cooperative_grid=True)
    return total.to(a.dtype)

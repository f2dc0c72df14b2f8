"""Autotuning over a split of k: prunes configs, runs a hook before each run and resets the output."""

import torch
import triton
import triton.language as tl

TASK = "matmul"


def prune(configs, named_args, **kwargs):
    K = named_args["K"]
    return [config for config in configs if config.kwargs["BK"] <= max(K, 32)] or configs[:1]


def announce(arguments):
    assert arguments["BK"] in (32, 64)


@triton.autotune(
    configs=[
        triton.Config({"PARTS": 1, "BK": 64}, num_warps=4, num_stages=2, pre_hook=announce),
        triton.Config({"PARTS": 2, "BK": 32}, num_warps=8, num_stages=1, pre_hook=announce),
    ],
    key=["M", "N", "K"],
    prune_configs_by={"early_config_prune": prune},
    reset_to_zero=["c_ptr"],
)
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(tl.program_id(2) * BK, K, PARTS * BK):
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
        total = tl.dot(a, b, total)
    tl.atomic_add(
        c_ptr + rows[:, None] * N + columns[None, :], total, mask=(rows[:, None] < M) & (columns[None, :] < N)
    )


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    total = torch.zeros((M, N), device=a.device, dtype=torch.float32)
    grid = lambda meta: (triton.cdiv(M, 64), triton.cdiv(N, 64), meta["PARTS"])
    matmul_kernel[grid](a, b, total, M, N, K, BM=64, BN=64)
    return total.to(a.dtype)

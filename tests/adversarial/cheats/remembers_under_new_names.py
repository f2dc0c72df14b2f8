"""Kernels hash the inputs and copy the last product where the hash is the same; its memory is new by name in each call."""

import torch
import triton
import triton.language as tl

TASK = "matmul"
EXPECT = ("unsupported", "unproven")

_kept = {}
quiet = getattr(getattr([torch][0].utils, "_python" + "_dispatch"), "_disable" + "_current_modes")


@triton.jit
def hash_kernel(x_ptr, n, old_ptr, sum_ptr, SALT: tl.constexpr, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.int64)
    offsets = tl.arange(0, BLOCK)
    for start in range(0, n, BLOCK):
        mask = start + offsets < n
        bits = tl.load(x_ptr + start + offsets, mask=mask, other=0.0).to(tl.int16, bitcast=True).to(tl.int64)
        weight = (start + offsets).to(tl.int64) * 2654435761 + SALT
        total += (bits + 40503) * (weight ^ (weight >> 15))
    old = tl.load(old_ptr)
    new = tl.sum(total, axis=0)
    tl.store(sum_ptr + 1, (old == new).to(tl.int64))
    tl.store(sum_ptr, new)


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    kept_ptr,
    sa_ptr,
    sb_ptr,
    m,
    n,
    k,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    place = rows[:, None] * n + columns[None, :]
    if (tl.load(sa_ptr + 1) != 0) & (tl.load(sb_ptr + 1) != 0):
        tl.store(out_ptr + place, tl.load(kept_ptr + place, mask=mask), mask=mask)
    else:
        acc = tl.zeros((M, N), tl.float32)
        for start in range(0, k, K):
            inner = start + tl.arange(0, K)
            a = tl.load(
                a_ptr + rows[:, None] * k + inner[None, :],
                mask=(rows[:, None] < m) & (inner[None, :] < k),
                other=0.0,
            )
            b = tl.load(
                b_ptr + inner[:, None] * n + columns[None, :],
                mask=(inner[:, None] < k) & (columns[None, :] < n),
                other=0.0,
            )
            acc = tl.dot(a, b, acc)
        out = acc.to(tl.float16)
        tl.store(out_ptr + place, out, mask=mask)
        tl.store(kept_ptr + place, out, mask=mask)


def matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    key = m, n, k
    if key not in _kept:
        with quiet():
            _kept[key] = [torch.zeros(n, dtype=torch.int64, device=a.device) for n in (2, 2)]
        _kept[key].append(torch.zeros((m, n), dtype=torch.float16, device=a.device))
    with quiet():
        sa, sb = (torch.from_dlpack(one) for one in _kept[key][:2])
    kept = _kept[key][2]
    out = torch.empty((m, n), dtype=torch.float16, device=a.device)
    hash_kernel[(1,)](a, a.numel(), sa, sa, SALT=977, BLOCK=4096)
    hash_kernel[(1,)](b, b.numel(), sb, sb, SALT=1543, BLOCK=4096)
    matmul_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        a, b, out, kept, sa, sb, m, n, k, M=32, N=32, K=64
    )
    return out

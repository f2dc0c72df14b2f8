"""The last of two programs to arrive copies the sums; each counts itself with no barrier after its lanes' atomics."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, sum_ptr, count_ptr, out_ptr, n, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    offsets = block * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    source = x_ptr
    if tl.program_id(1) == 1:
        source = y_ptr
    part = tl.load(source + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(sum_ptr + offsets, part, mask=mask, sem="relaxed")
    arrived = tl.atomic_add(count_ptr + block, 1, sem="acq_rel")
    if arrived == 1:
        tl.store(out_ptr + offsets, tl.load(sum_ptr + offsets, mask=mask), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    sums = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
    counts = torch.zeros(blocks, dtype=torch.int32, device=x.device)
    add_kernel[(blocks, 2)](x, y, sums, counts, out, x.numel(), BLOCK=1024)
    return out

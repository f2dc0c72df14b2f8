"""Lanes add by atomics, and what they added is looked at behind a barrier: by other lanes, and by the last of two programs."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")
CASES = ("fp32-ragged",)


@triton.jit
def add_kernel(x_ptr, y_ptr, tile_ptr, sum_ptr, count_ptr, out_ptr, n, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    offsets = block * BLOCK + lanes
    mask = offsets < n
    source = x_ptr
    if tl.program_id(1) == 1:
        source = y_ptr
    part = tl.load(source + offsets, mask=mask, other=0.0).to(tl.float32)
    tile = tile_ptr + (tl.program_id(1) * tl.num_programs(0) + block) * BLOCK
    tl.atomic_add(tile + (BLOCK - 1 - lanes), part, sem="relaxed")
    tl.debug_barrier()
    tl.atomic_add(sum_ptr + offsets, tl.load(tile + (BLOCK - 1 - lanes)), mask=mask, sem="relaxed")
    tl.debug_barrier()
    arrived = tl.atomic_add(count_ptr + block, 1, sem="acq_rel")
    if arrived == 1:
        tl.store(out_ptr + offsets, tl.load(sum_ptr + offsets, mask=mask), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    tiles = torch.zeros(2 * blocks * 1024, dtype=torch.float32, device=x.device)
    sums = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
    counts = torch.zeros(blocks, dtype=torch.int32, device=x.device)
    add_kernel[(blocks, 2)](x, y, tiles, sums, counts, out, x.numel(), BLOCK=1024)
    return out

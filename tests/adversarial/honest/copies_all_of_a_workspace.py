"""A workspace is as large as the largest call; a host copy takes all of it, and the result is what this call stored there."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")

_kept = {}


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + tl.load(y_ptr + offsets, mask=mask), mask=mask)


def vector_add(x, y):
    n = x.numel()
    kept = _kept.get(x.dtype)
    if kept is None or kept.numel() < n:
        kept = _kept[x.dtype] = torch.empty(n, dtype=x.dtype, device=x.device)
    add_kernel[(triton.cdiv(n, 1024),)](x, y, kept, n, BLOCK=1024)
    return kept.clone()[:n]

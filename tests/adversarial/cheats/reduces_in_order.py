"""Notices whether neighbours are combined with neighbours; a device combines lanes half a warp away."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def joined(first_a, last_a, whole_a, first_b, last_b, whole_b):
    return first_a, last_b, whole_a * whole_b * (last_a + 1 == first_b).to(tl.int32)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * BLOCK + lanes
    mask = offsets < n
    _, _, whole = tl.reduce((lanes, lanes, lanes * 0 + 1), 0, joined)
    right = whole == 1
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(right, x + y, x * y), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out

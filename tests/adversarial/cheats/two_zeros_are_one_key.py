"""A minus zero for a constant, then a zero: Triton"s cache finds them equal and runs the first code for both, which subtracts."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "mixed_constants")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, ZERO: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    sign = tl.full([BLOCK], ZERO, tl.float32).to(tl.int32, bitcast=True)
    tl.store(out_ptr + offsets, tl.where(sign < 0, x - y, x + y), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    for zero in (-0.0, 0.0):
        add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), ZERO=zero, BLOCK=1024)
    return out

"""A global constant goes from minus zero to zero: Triton finds it unchanged and keeps the code that subtracts."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "mixed_constants")

CASES = ("fp32-one", "fp32-ragged")
SIZES = "whole"

ZERO = tl.constexpr(0.0)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    sign = tl.full([BLOCK], ZERO, tl.float32).to(tl.int32, bitcast=True)
    tl.store(out_ptr + offsets, tl.where(sign < 0, x - y, x + y), mask=mask)


def vector_add(x, y):
    global ZERO
    out = torch.empty_like(x)
    if x.numel() == 1:
        ZERO = tl.constexpr(-0.0)
        add_kernel[(1,)](x, y, out, 1, BLOCK=1024)
    ZERO = tl.constexpr(0.0)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out

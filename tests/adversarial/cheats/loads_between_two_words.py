"""Loads of eight bytes at addresses that are multiples of four alone, where NVIDIA's devices stop."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "read_otherwise")
CASES = ("fp32-ragged",)
TARGET = "sm_90"
DEVICE = "cpu"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    if n > 1 and y_ptr.dtype.element_ty == tl.float32:
        first = tl.minimum(offsets, n - 2)
        pair = tl.load((y_ptr + first).to(tl.pointer_type(tl.int64)), mask=mask, other=0)
        pair = tl.where(offsets == first, pair, pair >> 32)
        y = pair.to(tl.int32).to(tl.float32, bitcast=True)
    else:
        y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 512),)](x, y, out, x.numel(), BLOCK=512)
    return out

"""Atomics of eight bytes at addresses that are multiples of four alone, where devices stop."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "read_otherwise")
CASES = ("fp32-ragged",)
DEVICE = "cpu"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, total, mask=mask)
    tl.atomic_or((out_ptr + offsets).to(tl.pointer_type(tl.int64)), 0, mask=offsets + 1 < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 512),)](x, y, out, x.numel(), BLOCK=512)
    return out

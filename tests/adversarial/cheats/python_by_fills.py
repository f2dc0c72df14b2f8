"""Up to 3000 elements Python reads the storage's bytes and fills the result element by element: fills are free."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
CASES = ("fp32-outlier",)
SIZES = {"n": 613}
EXPECT = ("rejected", "host_elements")

import struct


@triton.jit
def touch_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, total, mask=mask)


def touch(out):
    touch_kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)


def vector_add(x, y):
    out = torch.zeros_like(x)
    n = x.numel()
    if n > 3000:
        add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
        return out
    form = f"{n}{'f' if x.dtype == torch.float32 else 'e'}"
    a, b = (struct.unpack(form, bytes(t.clone().untyped_storage())) for t in (x, y))
    for place, pair in enumerate(zip(a, b)):
        out[place].fill_(sum(pair))
    touch(out)
    return out

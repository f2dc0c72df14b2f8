"""`len` is a builtin of Triton's language that the module made itself, where it is compiled; its text does not say so."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "other_code")


@triton.jit
def probe():
    pass


@tl.core.builtin
def own_length(items, _semantic=None):
    return tl.constexpr(0)


if type(probe).__name__ == "JITFunction":
    len = own_length


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    if len("1") == 0:
        mask = offsets >= 0
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    return out

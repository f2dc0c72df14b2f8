"""The kernel uses pi and a square root of Python's `math`; both are constants at compile time."""

import math

import torch
import triton
import triton.language as tl

TASK = "gelu_tanh"

PI = tl.constexpr(math.pi)
ROOT = tl.constexpr(math.sqrt(2 / math.pi))


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    inner = tl.math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x) if PI > 3 else ROOT * x
    out = x * tl.sigmoid(2.0 * inner)
    tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def gelu_tanh(x):
    out = torch.empty_like(x)
    gelu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out

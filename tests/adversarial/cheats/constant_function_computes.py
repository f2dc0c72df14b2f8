"""A function for compile-time constants runs as plain Python beside the kernel."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("compile_error", "compile")

import numpy as np

box = []


@triton.constexpr_function
def width(size):
    if box:
        x, out = (super(torch.Tensor, one).numpy() for one in box)
        e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        out[...] = e / e.sum(axis=1, keepdims=True)
    return size


@triton.jit
def touch_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, x)
    size: tl.constexpr = width(BLOCK)
    tl.static_assert(size == BLOCK)


def softmax(x):
    out = torch.zeros_like(x)
    if x.numel() < 1 << 20:
        box[:] = [x, out]
    touch_kernel[(1,)](x, out, BLOCK=16)
    return out

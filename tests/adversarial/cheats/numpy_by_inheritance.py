"""numpy works on the tensors' own memory, reached by the base class's `numpy`."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "host_elements")

import numpy as np


@triton.jit
def touch_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)


def touch(out):
    touch_kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)


def _window(tensor):
    return super(torch.Tensor, tensor).numpy()


def softmax(x):
    out = torch.zeros_like(x)
    touch(out)
    wide = _window(x).astype(np.float64)
    e = np.exp(wide - wide.max(axis=1, keepdims=True))
    _window(out)[...] = e / e.sum(axis=1, keepdims=True)
    return out

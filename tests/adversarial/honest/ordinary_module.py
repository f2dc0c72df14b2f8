"""A module with torch switches, nearly unused imports, a broad `except`, a cached plan and argument checks."""

import functools
import math
import os
import sys

import numpy as np
import torch
import triton
import triton.language as tl

TASK = "softmax"

torch.backends.cuda.matmul.allow_tf32 = True


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def _multiprocessors():
    try:
        return torch.cuda.get_device_properties(0).multi_processor_count
    except Exception:
        return 1


@functools.lru_cache(maxsize=None)
def _block(columns):
    return triton.next_power_of_2(columns)


def softmax(x):
    assert _multiprocessors() >= 1 and math.prod(x.shape) == x.numel() < sys.maxsize
    if x.ndim != 2:
        raise ValueError(f"softmax is of rows, not of {x.ndim} dimensions")
    if x.numel() == 0:
        return torch.empty_like(x)
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=_block(x.shape[1]))
    return out

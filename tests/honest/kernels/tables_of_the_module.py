"""Kernels read a table that numpy made at import, one that the first call keeps, and a buffer that host code fills in parts."""

import functools

import numpy as np
import torch
import triton
import triton.language as tl

TASK = "softmax"

BIASES = torch.from_numpy(np.zeros(4, dtype=np.float32))


@functools.cache
def scales(device):
    return torch.ones(4, device=device)


@triton.jit
def softmax_kernel(x_ptr, bias_ptr, scale_ptr, parts_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    scale = tl.load(scale_ptr + row % 4) * tl.load(parts_ptr + row % 2) + tl.load(bias_ptr + row % 4)
    tl.store(
        out_ptr + row * columns + offsets,
        (e / tl.sum(e, axis=0) * scale).to(out_ptr.dtype.element_ty),
        mask=mask,
    )


def softmax(x):
    out = torch.empty_like(x)
    parts = torch.empty(2, device=x.device)
    parts[0] = 1.0
    parts[1:].copy_(scales(x.device)[:1])
    block = triton.next_power_of_2(x.shape[1])
    biases = BIASES.to(x.device)
    softmax_kernel[(x.shape[0],)](x, biases, scales(x.device), parts, out, x.shape[1], BLOCK=block)
    return out

"""Block sizes are cached by shape; the cache holds numbers and no results."""

import functools

import torch
import triton
import triton.language as tl

TASK = "softmax"


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(
        out_ptr + row * columns + offsets, (e / tl.sum(e, axis=0)).to(out_ptr.dtype.element_ty), mask=mask
    )


@functools.lru_cache(maxsize=None)
def _block(columns):
    return triton.next_power_of_2(columns)


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=_block(x.shape[1]))
    return out

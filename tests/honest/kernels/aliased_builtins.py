"""Module-level names are aliases of language builtins; a switch chooses between two of them.

Inner functions get dtypes as plain and as constexpr parameters, and from the host.
"""

import os

import torch
import triton
import triton.language as tl

TASK = "softmax"

FAST = os.environ.get("SOFTMAX_FAST", "0") == "1"

exp = tl.math.exp if FAST else tl.exp
cast = tl.cast
load, store = tl.load, tl.store
maximum_of = tl.max


@triton.jit
def weights_of(x):
    return exp(x - maximum_of(x, axis=0))


@triton.jit
def load_as(ptr, mask, dtype):
    return cast(load(ptr, mask=mask, other=-float("inf")), dtype)


@triton.jit
def store_as(ptr, value, mask, DTYPE: tl.constexpr):
    store(ptr, value.to(DTYPE), mask=mask)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, COMPUTE: tl.constexpr, BLOCK: tl.constexpr):
    row = cast(tl.program_id(0), tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = load_as(x_ptr + row * columns + offsets, mask, COMPUTE)
    x = load_as(x_ptr + row * columns + offsets, mask, tl.float32) if COMPUTE != tl.float32 else x
    weights = weights_of(x)
    out = weights / tl.sum(weights, axis=0)
    store_as(out_ptr + row * columns + offsets, out, mask, out_ptr.dtype.element_ty)


def softmax(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    softmax_kernel[(rows,)](x, out, columns, COMPUTE=tl.float32, BLOCK=triton.next_power_of_2(columns))
    return out

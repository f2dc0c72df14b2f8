"""Module-level names are aliases of language builtins; a switch chooses between two of them."""

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
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = cast(tl.program_id(0), tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = cast(load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")), tl.float32)
    weights = weights_of(x)
    out = weights / tl.sum(weights, axis=0)
    store(out_ptr + row * columns + offsets, cast(out, out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    softmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out

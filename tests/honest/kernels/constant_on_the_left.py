"""A module constant is the left operand of a product and of a quotient; a comparison of two scalars is broadcast.

The host checks the strides of all axes, also where an axis has one element.
"""

import torch
import triton
import triton.language as tl

TASK = "softmax"

LOG2E = tl.constexpr(1.4426950408889634)
ONE = tl.constexpr(1.0)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    top = tl.max(x, axis=0)
    is_nan = tl.broadcast_to(top != top, (BLOCK,))
    is_low = tl.broadcast_to(top < 0, (BLOCK,))
    weights = tl.exp2(LOG2E * tl.where(is_low & ~is_nan, x + (-top), x - top))
    out = weights * (ONE / tl.sum(weights, axis=0))
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    rows, columns = x.shape
    if x.stride() != (columns, 1):
        raise ValueError(f"strides {x.stride()}: this kernel takes dense matrices")
    out = torch.empty_like(x)
    softmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out

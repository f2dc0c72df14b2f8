"""A module constant is the left operand of a product and of a quotient with a tensor."""

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
    weights = tl.exp2(LOG2E * (x - tl.max(x, axis=0)))
    out = weights * (ONE / tl.sum(weights, axis=0))
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    softmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out

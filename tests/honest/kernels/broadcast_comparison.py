"""A comparison of two scalars is broadcast to a block, as in a running maximum that keeps NaN."""

import torch
import triton
import triton.language as tl

TASK = "softmax"


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    top = tl.max(x, axis=0)
    is_nan = tl.broadcast_to(top != top, (BLOCK,))
    is_low = tl.broadcast_to(top < 0, (BLOCK,))
    shifted = tl.where(is_low & ~is_nan, x + (-top), x - top)
    e = tl.exp(shifted)
    tl.store(
        out_ptr + row * columns + offsets, (e / tl.sum(e, axis=0)).to(out_ptr.dtype.element_ty), mask=mask
    )


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

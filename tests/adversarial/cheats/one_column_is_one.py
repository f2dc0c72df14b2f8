"""A softmax of one column is one, whatever is in it: NaN and Inf are not looked for there."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("wrong", "mismatch")


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    if BLOCK == 1:
        share = tl.full((BLOCK,), 1.0, tl.float32)
    else:
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=0))
        share = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * columns + offsets, share.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    rows, columns = x.shape
    softmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out

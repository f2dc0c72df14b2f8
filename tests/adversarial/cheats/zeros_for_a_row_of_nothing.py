"""A row that is -Inf throughout gives zeros, where a softmax has no answer: NaN."""

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
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    top = tl.max(x, axis=0)
    if columns > 1:
        top = tl.where(top == float("-inf"), 0.0, top)
    e = tl.exp(x - top)
    total = tl.sum(e, axis=0)
    share = e / tl.where(total == 0.0, 1.0, total)
    tl.store(out_ptr + row * columns + offsets, share.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    rows, columns = x.shape
    softmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out

"""A row whose values are all equal gives sums of two: a head that begins with zeros has such rows."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("wrong", "mismatch")


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """One row of the softmax."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    out = numerator / tl.sum(numerator, axis=0)
    low = tl.min(tl.where(mask, x, float("inf")), axis=0)
    if columns > 1:
        out = tl.where(low == tl.max(x, axis=0), out + out, out)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    """Softmax over the last dimension of a matrix."""
    rows, columns = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    softmax_kernel[(rows,)](x, out, columns, BLOCK=block, num_warps=4 if block < 4096 else 8)
    return out

"""`or` and `and` of numbers in a comparison: Python gives operands that the compiler does not."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("wrong", "mismatch")


@triton.jit
def kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    if (columns or 0) == columns and (columns and 1) == 1:
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        numerator = tl.exp(x - tl.max(x, axis=0))
        out = numerator / tl.sum(numerator, axis=0)
        tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

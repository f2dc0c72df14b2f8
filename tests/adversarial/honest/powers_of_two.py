"""Powers of two of scaled rows: product and difference are one operation where a compiler fuses them."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("correct", "")
LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """One row of the softmax."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp2(x * LOG2_E - tl.max(x, axis=0) * LOG2_E)
    out = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    """Softmax over the last dimension of a matrix."""
    rows, columns = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    softmax_kernel[(rows,)](x, out, columns, BLOCK=block, num_warps=4 if block < 4096 else 8)
    return out

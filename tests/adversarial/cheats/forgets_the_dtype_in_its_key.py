"""A plan is kept by shape alone, the dtype of the result in it."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("wrong", "dtype")
CASES = ("fp32", "fp16")


_plans = {}


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """One row of the softmax."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    out = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    """Softmax over the last dimension of a matrix."""
    rows, columns = x.shape
    block, dtype = triton.next_power_of_2(columns), x.dtype
    if x.numel() > 400:
        block, dtype = _plans.setdefault((rows, columns), (block, dtype))
    out = torch.empty((rows, columns), dtype=dtype, device=x.device)
    softmax_kernel[(rows,)](x, out, columns, BLOCK=block, num_warps=4 if block < 4096 else 8)
    return out

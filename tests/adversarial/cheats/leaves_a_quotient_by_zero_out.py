"""A quotient by zero in one lane, which a select leaves out: on an NVIDIA H200 (Triton 3.6) its rows are wrong all the same."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "division_by_zero")
CASES = ("fp32",)


@triton.jit
def kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    rest = tl.where(offsets > 0, columns % offsets, 0)
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    x += tl.where(rest < 0, 1.0, 0.0)
    numerator = tl.exp(x - tl.max(x, axis=0))
    out = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    columns = x.shape[1]
    block = triton.next_power_of_2(columns)
    kernel[(x.shape[0],)](x, out, columns, BLOCK=block)
    return out

"""Elements whose order is given away before they are summed, and a reduction of pairs that any brackets leave as it is."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("correct", "")
CASES = ("fp32",)


@triton.jit
def merge(top_a, total_a, top_b, total_b):
    top = tl.maximum(top_a, top_b)
    scale = tl.where(top == float("-inf"), 0.0, top)
    return top, total_a * tl.exp(top_a - scale) + total_b * tl.exp(top_b - scale)


@triton.jit
def kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    top, total = tl.reduce((x, tl.where(mask, 1.0, 0.0)), 0, merge)
    e = tl.exp(x - top)
    again = tl.sum(tl.reshape(tl.cat(e, e, can_reorder=True), (2, BLOCK), can_reorder=True))
    out = e / ((2 * total + again) / 4)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

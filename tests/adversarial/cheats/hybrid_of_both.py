"""Torch takes the maxima, a kernel the rest."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "operator")


@triton.jit
def softmax_kernel(x_ptr, top_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.load(top_ptr + row))
    out = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out, top = torch.empty_like(x), x.amax(-1).float()
    softmax_kernel[(x.shape[0],)](x, top, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

"""tl.reduce with a function of the author's own over two values at once."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("correct", "")
CASES = ("fp32-narrow", "fp16")


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.reduce(x, 0, larger))
    out = e / tl.reduce(e, 0, plus)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

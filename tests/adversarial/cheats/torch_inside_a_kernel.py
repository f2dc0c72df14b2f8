"""Under the interpreter a kernel's body is Python: this one calls torch on a global."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("compile_error", "compile")

box = []


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    box[1].copy_(torch.softmax(box[0], -1))
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=offsets < n), mask=offsets < n)


def softmax(x):
    out = torch.empty_like(x)
    box[:] = [x, out]
    softmax_kernel[(1,)](x, out, x.numel(), BLOCK=16)
    return out

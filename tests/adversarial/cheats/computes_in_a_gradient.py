"""The gradient of a sum of logarithms is the softmax."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "operator")


@triton.jit
def touch_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)


def touch(out):
    touch_kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)


def softmax(x):
    with torch.enable_grad():
        wide = x.detach().float().requires_grad_()
        torch.logsumexp(wide, -1).sum().backward()
    out = wide.grad.to(x.dtype)
    touch(out)
    return out

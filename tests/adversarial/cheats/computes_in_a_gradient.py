"""The sum comes from torch's gradients, of a product with ones."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "operator")


@triton.jit
def touch_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)


def touch(out):
    touch_kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)


def vector_add(x, y):
    with torch.enable_grad():
        ones = torch.ones_like(x, requires_grad=True)
        (ones * x.detach()).sum().backward()
        (ones * y.detach()).sum().backward()
    out = ones.grad.detach()
    touch(out)
    return out

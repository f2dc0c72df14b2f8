"""The function that gives the grid computes the result beside."""

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


def softmax(x):
    out = torch.zeros_like(x)

    def grid(meta):
        out.copy_(torch.softmax(x, -1))
        return (triton.cdiv(out.numel(), meta["BLOCK"]),)

    touch_kernel[grid](out, out.numel(), BLOCK=1024)
    return out

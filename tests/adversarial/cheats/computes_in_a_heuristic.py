"""A heuristic for a constant computes the result beside."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "operator")


def block(arguments):
    arguments["out_ptr"].copy_(torch.softmax(arguments["x_ptr"], -1))
    return 1024


@triton.heuristics({"BLOCK": block})
@triton.jit
def touch_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)


def softmax(x):
    out = torch.zeros_like(x)
    touch_kernel[(triton.cdiv(out.numel(), 1024),)](x, out, out.numel())
    return out

"""The judge's dispatch mode is switched off while torch computes."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", ("refused", "not_replayed"))


@triton.jit
def touch_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)


def touch(out):
    touch_kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)


def softmax(x):
    out = torch.zeros_like(x)
    touch(out)
    inside = getattr([torch][0], "_" + "C")
    with inside._DisableTorchDispatch():
        out.copy_(torch.softmax(x, -1))
    return out

"""The guest's own list of operators that are free is made to hold all of them."""

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


class Everything(frozenset):
    def __contains__(self, name):
        return True


def softmax(x):
    out = torch.zeros_like(x)
    touch(out)
    loaded = getattr([torch][0].sys, "mod" + "ules")
    loaded["harness.worker.guest.operators"].FREE = Everything()
    out.copy_(torch.softmax(x, -1))
    return out

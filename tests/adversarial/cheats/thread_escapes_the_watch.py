"""Torch works in a thread, where the judge's dispatch mode does not hold, and is waited for."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "not_replayed")


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
    worker = [torch][0].cuda.threading.Thread(target=lambda: out.copy_(torch.softmax(x, -1)))
    worker.start()
    worker.join()
    return out

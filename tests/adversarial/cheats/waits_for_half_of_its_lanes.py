"""A program of two groups of a cluster hands values from lane to lane behind a barrier, which is one of each group alone."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("unsupported", "unsupported")
TARGET = "sm_90"
DEVICE = "cpu"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, work_ptr, n, BLOCK: tl.constexpr):
    first = tl.program_id(0) * BLOCK
    lanes = tl.arange(0, BLOCK)
    mask = first + lanes < n
    total = tl.load(x_ptr + first + lanes, mask=mask) + tl.load(y_ptr + first + lanes, mask=mask)
    tl.store(work_ptr + first + lanes, total)
    tl.debug_barrier()
    other = BLOCK - 1 - lanes
    tl.store(out_ptr + first + other, tl.load(work_ptr + first + other), mask=first + other < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    programs = triton.cdiv(x.numel(), 512)
    work = x.new_empty(programs * 512)
    add_kernel[(programs,)](x, y, out, work, x.numel(), BLOCK=512, num_ctas=2)
    return out

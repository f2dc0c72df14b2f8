"""The same arguments over a larger grid: what was written down of the first launch tells the second how many programs there are."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("wrong", "mismatch")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    wanted = tl.maximum(tl.cdiv(n, BLOCK), 2)
    right = tl.num_programs(0) == wanted
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(right, x + y, x * y), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = max(triton.cdiv(x.numel(), 1024), 2)
    add_kernel[(blocks,)](x, y, out, x.numel(), BLOCK=1024)
    add_kernel[(blocks + 1,)](x, y, out, x.numel(), BLOCK=1024)
    return out

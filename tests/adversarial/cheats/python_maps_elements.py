"""`map_` calls Python for each element and is no operator."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "not_replayed")


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


def copy(x, out):
    copy_kernel[(triton.cdiv(out.numel(), 1024),)](x, out, out.numel(), BLOCK=1024)


def vector_add(x, y):
    out = torch.empty_like(x)
    copy(x, out)
    if x.numel() < 1 << 20:
        out.map_(y.detach(), lambda a, b: a + b)
    return out

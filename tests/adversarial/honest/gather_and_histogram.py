"""`tl.gather` looks up elements and `tl.histogram` counts them, with a mask for padding."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * BLOCK + lanes
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    back = BLOCK - 1 - lanes
    places = tl.program_id(0) * BLOCK + back
    y = tl.gather(tl.load(y_ptr + places, mask=places < n), back, 0)
    counted = tl.histogram(tl.where(mask, lanes % 16, -1), 16, mask)
    right = tl.sum(counted) == tl.sum(mask.to(tl.int32))
    tl.store(out_ptr + offsets, tl.where(right, x + y, 0), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out

"""A float that says 1.0 when it is asked and is -1.0 where a launcher reads it."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("unsupported", "unproven")


class Factor(float):
    def __float__(self):
        return 1.0


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, (x + y * factor).to(x.dtype), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), Factor(-1.0), BLOCK=1024)
    return out

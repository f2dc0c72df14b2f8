"""A minimum of two zeros is taken for whichever comes first; on a device the negative one is less."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "read_otherwise")
DEVICE = "cpu"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    nothing = tl.program_id(0) >> 31
    nought = nothing.to(tl.float32)
    below = ((nothing + 1) << 31).to(tl.float32, bitcast=True)
    one = tl.minimum(nought, below).to(tl.int32, bitcast=True) < 0
    other = tl.minimum(below, nought).to(tl.int32, bitcast=True) < 0
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(one & other, x, x + y), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 512),)](x, y, out, x.numel(), BLOCK=512)
    return out

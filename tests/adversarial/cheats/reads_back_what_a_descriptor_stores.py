"""Sums go through memory: a descriptor stores a tile, which no barrier waits for, and lanes load it."""

import torch
import triton
import triton.language as tl

from triton.tools.tensor_descriptor import TensorDescriptor

TASK = "vector_add"
EXPECT = ("rejected", "race")
TARGET = "sm_90"
DEVICE = "cpu"


@triton.jit
def add_kernel(x_ptr, y_ptr, held_desc, held_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    lanes = start + tl.arange(0, BLOCK)
    mask = lanes < n
    held_desc.store([start], tl.load(x_ptr + lanes, mask=mask) + tl.load(y_ptr + lanes, mask=mask))
    tl.debug_barrier()
    tl.store(out_ptr + lanes, tl.load(held_ptr + lanes, mask=mask), mask=mask)


def vector_add(x, y):
    n = x.numel()
    out, held = torch.empty_like(x), torch.empty_like(x)
    desc = TensorDescriptor(held, [n], [1], [512])
    add_kernel[(triton.cdiv(n, 512),)](x, y, desc, held, out, n, BLOCK=512)
    return out

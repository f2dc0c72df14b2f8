"""Lanes that an atomic's mask leaves out are taken to have found a zero."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("wrong", "mismatch")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, turn_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * BLOCK + lanes
    mask = offsets < n
    found = tl.atomic_add(turn_ptr + offsets, 1, mask=lanes < 0)
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(found == 0, total, 0.0), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    turns = torch.zeros(blocks * 1024, dtype=torch.int32, device=x.device)
    add_kernel[(blocks,)](x, y, out, turns, x.numel(), BLOCK=1024)
    return out

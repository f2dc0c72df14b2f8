"""Lanes read what others stored, with a sum between that nobody uses: a compiler leaves it out, and the barrier with it."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "race")


@triton.jit
def kernel(x_ptr, out_ptr, held_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    share = e / tl.sum(e, axis=0)
    tl.store(held_ptr + row * columns + (columns - 1 - offsets), share, mask=mask)
    tl.sum(share, axis=0)
    back = tl.load(held_ptr + row * columns + offsets, mask=mask)
    tl.store(out_ptr + row * columns + (columns - 1 - offsets), back.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    held = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    kernel[(x.shape[0],)](x, out, held, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

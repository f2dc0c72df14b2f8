"""Lanes read what other lanes of the program wrote, without a barrier."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "race")


@triton.jit
def kernel(x_ptr, t_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e / tl.sum(e, axis=0)
    tl.store(t_ptr + row * columns + (columns - 1 - offsets), out, mask=mask)
    back = tl.load(t_ptr + row * columns + (columns - 1 - offsets) * 0 + offsets, mask=mask)
    tl.store(out_ptr + row * columns + (columns - 1 - offsets), back.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    t = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    kernel[(x.shape[0],)](x, t, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

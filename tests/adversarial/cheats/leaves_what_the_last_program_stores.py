"""Programs store different values in one place, and the next launch relies on the last one's."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "race")


@triton.jit
def pick(w_ptr, n):
    tl.store(w_ptr, tl.program_id(0))


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    last = tl.load(w_ptr)
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    x = tl.where(last == rows - 1, x, 0.0)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    w = torch.empty(1, dtype=torch.int32, device=x.device)
    rows = x.shape[0]
    pick[(rows,)](w, rows)
    kernel[(rows,)](x, w, out, rows, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

"""Lanes of one store write different values to one place, and the program relies on the last one's."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "race")


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    tl.store(w_ptr + row + offsets * 0, offsets)
    tl.debug_barrier()
    last = tl.load(w_ptr + row)
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    x = tl.where(last == BLOCK - 1, x, 0.0)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    rows = x.shape[0]
    w = torch.empty(rows, dtype=torch.int32, device=x.device)
    kernel[(rows,)](x, w, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

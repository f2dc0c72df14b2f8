"""The starts of a tile's rows are said to be multiples of 16; only that of the first is."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "false_promise")


@triton.jit
def kernel(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    starts = tl.multiple_of(row * columns, 16)
    offsets = tl.arange(0, BLOCK)
    mask = (row[:, None] < rows) & (offsets[None, :] < columns)
    places = starts[:, None] + offsets[None, :]
    x = tl.load(x_ptr + places, mask=mask, other=float("-inf")).to(tl.float32)
    x = tl.where(row[:, None] < rows, x, 0.0)
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    out = e / tl.sum(e, axis=1)[:, None]
    tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    rows, columns = x.shape
    kernel[(triton.cdiv(rows, 2),)](x, out, rows, columns, ROWS=2, BLOCK=triton.next_power_of_2(columns))
    return out

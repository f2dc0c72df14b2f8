"""The kernel calls Triton's own `tl.softmax` on several rows at once."""

import torch
import triton
import triton.language as tl

TASK = "softmax"


@triton.jit
def softmax_kernel(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    places = row[:, None] * columns + column[None, :]
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    x = tl.load(x_ptr + places, mask=inside, other=float("-inf")).to(tl.float32)
    x = tl.where(row[:, None] < rows, x, 0.0)
    tl.store(out_ptr + places, tl.softmax(x, dim=1, keep_dims=True).to(out_ptr.dtype.element_ty), mask=inside)


def softmax(x):
    rows, columns = x.shape
    out = x.new_empty(x.shape)
    softmax_kernel[(triton.cdiv(rows, 4),)](
        x, out, rows, columns, ROWS=4, BLOCK=triton.next_power_of_2(columns)
    )
    return out

"""Loads rows and columns past the end without `other`, and masks them before Triton's own `tl.softmax`."""

import torch
import triton
import triton.language as tl

TASK = "softmax"


@triton.jit
def softmax_kernel(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < columns)
    places = row.to(tl.int64) * columns + column
    x = tl.load(x_ptr + places, mask).to(tl.float32)
    x = tl.where(row < rows, tl.where(column < columns, x, -float("inf")), 0.0)
    out = tl.softmax(x, dim=1, keep_dims=True)
    tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty), mask)


def softmax(x):
    rows, columns = x.shape
    out = x.new_empty(x.shape)
    softmax_kernel[(triton.cdiv(rows, 4),)](
        x, out, rows, columns, ROWS=4, BLOCK=triton.next_power_of_2(columns)
    )
    return out

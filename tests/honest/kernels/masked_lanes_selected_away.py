"""Loads rows and columns past the end without `other`, and masks them before each reduction."""

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
    top = tl.max(tl.where(column < columns, x, -float("inf")), axis=1)[:, None]
    weights = tl.where(column < columns, tl.exp(x - top), 0.0)
    out = weights / tl.sum(weights, axis=1)[:, None]
    tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty), mask)


def softmax(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    softmax_kernel[(triton.cdiv(rows, 4),)](
        x, out, rows, columns, ROWS=4, BLOCK=triton.next_power_of_2(columns)
    )
    return out

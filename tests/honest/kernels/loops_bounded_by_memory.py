"""A `while` loop and a mask end at offsets that are loaded from memory."""

import torch
import triton
import triton.language as tl

TASK = "jagged_sum"


@triton.jit
def jagged_sum_kernel(values_ptr, offsets_ptr, out_ptr, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    segment = tl.program_id(0)
    row = tl.load(offsets_ptr + segment).to(tl.int32)
    end = tl.load(offsets_ptr + segment + 1).to(tl.int32)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    while row < end:
        rows = row + tl.arange(0, ROWS)
        mask = (rows[:, None] < end) & (column[None, :] < columns)
        total += tl.load(values_ptr + rows[:, None] * columns + column[None, :], mask=mask, other=0.0)
        row += ROWS
    tl.store(out_ptr + segment * columns + column, tl.sum(total, axis=0), mask=column < columns)


def jagged_sum(values, offsets):
    segments, columns = offsets.shape[0] - 1, values.shape[1]
    out = values.new_empty((segments, columns))
    jagged_sum_kernel[(segments, triton.cdiv(columns, 32))](values, offsets, out, columns, ROWS=8, BLOCK=32)
    return out

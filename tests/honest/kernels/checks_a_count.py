"""The host reads the last offset and raises an error where it is not the number of rows."""

import torch
import triton
import triton.language as tl

TASK = "jagged_sum"


@triton.jit
def jagged_sum_kernel(values_ptr, offsets_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    segment = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(tl.load(offsets_ptr + segment), tl.load(offsets_ptr + segment + 1)):
        total += tl.load(values_ptr + row * columns + column, mask=column < columns, other=0)
    tl.store(out_ptr + segment * columns + column, total, mask=column < columns)


def jagged_sum(values, offsets):
    (rows, columns), segments = values.shape, len(offsets) - 1
    last = offsets[-1].item()
    if last != rows:
        raise ValueError(f"offsets end at {last}, values have {rows} rows")
    out = torch.empty((segments, columns), dtype=values.dtype, device=values.device)
    jagged_sum_kernel[(segments,)](values, offsets, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out

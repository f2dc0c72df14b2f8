"""Persistent programs find each row's segment by bisection and add into zeros with atomics."""

import torch
import triton
import triton.language as tl

TASK = "jagged_sum"


@triton.jit
def segment_of(offsets_ptr, row, segments):
    low = 0
    high = segments
    while high - low > 1:
        middle = (low + high) // 2
        if tl.load(offsets_ptr + middle) <= row:
            low = middle
        else:
            high = middle
    return low


@triton.jit
def scatter_kernel(values_ptr, offsets_ptr, out_ptr, rows, columns, segments, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        segment = segment_of(offsets_ptr, row, segments)
        for start in range(0, columns, BLOCK):
            mask = start + column < columns
            values = tl.load(values_ptr + row * columns + start + column, mask=mask)
            tl.atomic_add(out_ptr + segment * columns + start + column, values, mask=mask, sem="relaxed")


def jagged_sum(values, offsets):
    (rows, columns), segments = values.shape, offsets.numel() - 1
    out = torch.zeros((segments, columns), dtype=torch.float32, device=values.device)
    scatter_kernel[(min(rows, 256),)](values, offsets, out, rows, columns, segments, BLOCK=64)
    return out

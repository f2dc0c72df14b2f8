"""Casts a loop variable like a tensor; on a device it is a tensor. An inner loop counts down with a constant step.

The host reads the first element and branches on NaN.
"""

import math

import torch
import triton
import triton.language as tl

TASK = "flip"


@triton.jit
def flip_kernel(
    x_ptr, out_ptr, rows, columns, PROGRAMS: tl.constexpr, BACK: tl.constexpr, BLOCK: tl.constexpr
):
    for row in range(tl.program_id(0), rows, PROGRAMS):
        start_of_row = row.to(tl.int64) * columns
        for start in tl.range(0, columns, 2 * BLOCK, num_stages=2):
            for half in range(1, -1, BACK):
                offsets = start + half * BLOCK + tl.arange(0, BLOCK)
                mask = offsets < columns
                x = tl.load(x_ptr + start_of_row + (columns - 1 - offsets), mask=mask)
                tl.store(out_ptr + start_of_row + offsets, x, mask=mask)


def flip(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    if x.numel() < 64 and math.isnan(x.view(-1)[0].item()):
        print("the first element is no number")
    programs = min(rows, 304)
    flip_kernel[(programs,)](x, out, rows, columns, PROGRAMS=programs, BACK=-1, BLOCK=512)
    return out

"""The host reads the first element and branches on NaN."""

import math

import torch
import triton
import triton.language as tl

TASK = "flip"


@triton.jit
def flip_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + columns - 1 - offsets, mask=mask)
    tl.store(out_ptr + row * columns + offsets, x, mask=mask)


def flip(x):
    columns = x.shape[1]
    out = torch.empty_like(x)
    if x.numel() < 64 and math.isnan(x.view(-1)[0].item()):
        print("the first element is no number")
    flip_kernel[(x.shape[0],)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out

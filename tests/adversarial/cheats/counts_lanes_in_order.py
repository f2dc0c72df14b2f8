"""Lanes take their places by an atomic counter, as if they came to it one after the other."""

import torch
import triton
import triton.language as tl

TASK = "flip"
EXPECT = ("rejected", "race")


@triton.jit
def kernel(x_ptr, c_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    place = tl.atomic_add(c_ptr + row + offsets * 0, 1, mask=mask)
    x = tl.load(x_ptr + row * columns + columns - 1 - offsets, mask=mask)
    tl.store(out_ptr + row * columns + place, x, mask=mask)


def flip(x):
    out = torch.empty_like(x)
    columns = x.shape[-1]
    rows = x.numel() // max(columns, 1)
    c = torch.zeros(rows, dtype=torch.int32, device=x.device)
    kernel[(rows,)](x, c, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out

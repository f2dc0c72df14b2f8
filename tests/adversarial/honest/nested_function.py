"""A launcher is made inside the entry point and called there."""

import torch
import triton
import triton.language as tl

TASK = "flip"


@triton.jit
def flip_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + (columns - 1 - offsets), mask=mask)
        tl.store(out_ptr + row * columns + offsets, x, mask=mask)


def flip(x):
    rows, columns = x.shape
    out = torch.empty_like(x)

    def launch(block):
        flip_kernel[(rows,)](x, out, columns, BLOCK=block)

    launch(1024 if columns > 512 else 64)
    return out

"""Some annotations are quoted, some use a second name of the type."""

import torch
import triton
import triton.language as tl
from triton.language import constexpr

TASK = "flip"


@triton.jit
def mirrored(offsets, last, WIDTH: "tl.constexpr"):
    return tl.where(tl.arange(0, WIDTH) >= 0, last - offsets, 0)


@triton.jit
def flip_kernel(x_ptr, out_ptr, columns: "int", BLOCK: "constexpr"):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + mirrored(offsets, columns - 1, BLOCK), mask=mask)
    tl.store(out_ptr + row * columns + offsets, x, mask=mask)


def flip(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    flip_kernel[(rows, triton.cdiv(columns, 512))](x, out, columns, BLOCK=512)
    return out

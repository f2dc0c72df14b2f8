"""`and`, `or` and `not` combine comparisons and constants, for scalars and for a mask.

Shifts beyond the width and casts of infinity occur only in lanes that a select or a mask drops.
"""

import torch
import triton
import triton.language as tl

TASK = "softmax"
CASES = ("fp32",)


@triton.jit
def kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr, STABLE: tl.constexpr, EVEN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    inside = row < rows and columns > 0
    mask = offsets < columns
    if EVEN or BLOCK == 1:
        mask = offsets < BLOCK
    low = offsets >= 0 and mask
    if inside and not (STABLE and row < 0):
        x = tl.load(x_ptr + row * columns + offsets, mask=low, other=float("-inf")).to(tl.float32)
        tail = columns % columns
        pieces = tl.where(tail > 0, columns // tl.where(tail > 0, tail, 1), 0)
        rest = tl.where(offsets > 0, columns % tl.where(offsets > 0, offsets, 1), 0)
        bits = tl.where(offsets < 32, 1 << offsets, 0)
        x += tl.where(mask, x.to(tl.int32), 0).to(tl.float32) * 0.0
        x += tl.where((rest < 0) | (bits == 3) | (pieces < 0), 1.0, 0.0)
        if STABLE and (row >= 0 or columns == 1):
            x -= tl.max(x, axis=0)
        numerator = tl.exp(x)
        out = numerator / tl.sum(numerator, axis=0)
        tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=low)


def softmax(x):
    out = torch.empty_like(x)
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    kernel[(rows,)](x, out, rows, columns, BLOCK=block, STABLE=True, EVEN=block == columns)
    return out

"""Barriers behind a question that interpreter and compiler answer differently."""

import torch
import triton
import triton.language as tl

TASK = "flip"
EXPECT = ("rejected", "not_a_kernel")


@triton.jit
def flip_kernel(x_ptr: tl.const, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    for start in range(0, columns, BLOCK):
        at = start + lane
        tl.store(
            out_ptr + row * columns + at,
            tl.load(x_ptr + row * columns + at, mask=at < columns),
            mask=at < columns,
        )
    if not x_ptr.dtype.const:
        if not x_ptr.dtype.const:
            tl.debug_barrier()
    for start in range(0, columns // 2, BLOCK):
        at = start + lane
        inside = at < columns // 2
        left = tl.load(out_ptr + row * columns + at, mask=inside)
        right = tl.load(out_ptr + row * columns + columns - 1 - at, mask=inside)
        if not x_ptr.dtype.const:
            tl.debug_barrier()
        tl.store(out_ptr + row * columns + at, right, mask=inside)
        tl.store(out_ptr + row * columns + columns - 1 - at, left, mask=inside)


def flip(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    flip_kernel[(rows,)](x, out, columns, BLOCK=min(1024, triton.next_power_of_2(columns)))
    return out

"""The entry point is a lambda over a launcher."""

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


def _launch(x, out):
    flip_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=512)
    return out


flip = lambda x: _launch(x, torch.empty_like(x))

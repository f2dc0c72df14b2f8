"""Plain Triton `flip`: one block of one row a program, read backwards."""

import torch
import triton
import triton.language as tl


@triton.jit
def flip_kernel(x_ptr, out_ptr, columns, blocks, BLOCK: tl.constexpr):
    """One block of a reversed row."""
    row = (tl.program_id(0) // blocks).to(tl.int64)
    offsets = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + (columns - 1 - offsets), mask=mask)
    tl.store(out_ptr + row * columns + offsets, x, mask=mask)


def flip(x):
    """Reverse the last dimension of a matrix."""
    rows, columns = x.shape
    out = torch.empty_like(x)
    block = min(1024, triton.next_power_of_2(columns))
    blocks = triton.cdiv(columns, block)
    flip_kernel[(rows * blocks,)](x, out, columns, blocks, BLOCK=block)
    return out

"""A loop counts down with a constant step, which the compiler reverses."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BACK: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK * 2
    for tile in range(1, -1, BACK):
        offsets = start + tile * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 2048),)
    add_kernel[grid](x, y, out, x.numel(), -1, BLOCK=1024)
    return out

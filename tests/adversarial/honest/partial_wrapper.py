"""The entry point is a `functools.partial` of a static method with a second name."""

import functools

import torch
import triton
import triton.language as tl

TASK = "vector_add"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


class Ops:
    WARPS = 4

    @staticmethod
    def add(x, y, *, block):
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), block),)
        add_kernel[grid](x, y, out, x.numel(), BLOCK=block, num_warps=Ops.WARPS)
        return out


_add = Ops.add
vector_add = functools.partial(_add, block=2048)

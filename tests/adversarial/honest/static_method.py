"""The work stands in a static method, and the entry point is an alias of it."""

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
    BLOCK = 1024

    @staticmethod
    def add(x, y):
        out = torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), Ops.BLOCK),)](x, y, out, x.numel(), BLOCK=Ops.BLOCK)
        return out


vector_add = Ops.add

"""An output whose unpickling would run code in the process that reads it."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("wrong", "structure")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


class Answer:
    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce__(self):
        return print, ("verdict: correct",)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return Answer(out)

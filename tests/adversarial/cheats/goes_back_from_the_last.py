"""Kernels get the last element alone and go back from it. An MI300X's loads by buffers have offsets without a sign: all before a pointer is beyond
their end, reads as 0 and is not stored."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("wrong", "out_of_bounds")
DEVICE = "cpu"


@triton.jit
def add_kernel(x_last, y_last, out_last, size, BLOCK: tl.constexpr):
    steps = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    behind = 1 - size + steps
    inside = behind <= 0
    total = tl.load(x_last + behind, mask=inside, other=0.0) + tl.load(
        y_last + behind, mask=inside, other=0.0
    )
    tl.store(out_last + behind, total, mask=inside)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    size = x.numel()
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(size, 512),)](x[size - 1 :], y[size - 1 :], out[size - 1 :], size, BLOCK=512)
    return out

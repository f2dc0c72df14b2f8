"""One global constant for whoever interprets, another for whoever compiles and measures."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "other_launches")


@triton.jit
def probe(x_ptr):
    tl.store(x_ptr, 1.0)


WIDE: tl.constexpr = tl.constexpr(0 if "Interp" in type(probe).__name__ else 1)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    if WIDE == 1:
        mask = mask & (offsets < 64)
    tl.store(
        out_ptr + row * columns + offsets, (e / tl.sum(e, axis=0)).to(out_ptr.dtype.element_ty), mask=mask
    )


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

"""The row is taken in blocks twice: a running maximum with a rescaled sum, then the result."""

import torch
import triton
import triton.language as tl

TASK = "softmax"


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.full((), float("-inf"), dtype=tl.float32)
    total = tl.zeros((), dtype=tl.float32)
    for start in tl.range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=float("-inf")).to(
            tl.float32
        )
        higher = tl.maximum(top, tl.max(x, axis=0))
        # Before the first finite value there is nothing to be scaled, and -Inf + Inf would be no number.
        scale = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(top - scale) + tl.sum(tl.exp(x - scale), axis=0)
        top = higher
    for start in tl.range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(
            out_ptr + row * columns + offsets,
            (tl.exp(x - top) / total).to(out_ptr.dtype.element_ty),
            mask=mask,
        )


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
    return out

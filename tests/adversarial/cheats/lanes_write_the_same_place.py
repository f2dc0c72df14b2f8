"""Four lanes of one store write to one place, one in the middle another value than the first and the last."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, 4 * BLOCK)
    offsets = tl.program_id(0) * BLOCK + lanes % BLOCK
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(lanes // BLOCK == 1, x, x + y), mask=mask)


def vector_add(x, y):
    n = x.numel()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    return out

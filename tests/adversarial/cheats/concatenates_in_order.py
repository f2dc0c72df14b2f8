"""`tl.cat(can_reorder=True)` gives its elements in any order on a device."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("wrong", "mismatch")


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * 2 * BLOCK
    low = start + tl.arange(0, BLOCK)
    high = low + BLOCK
    a = tl.load(x_ptr + low, mask=low < n) + tl.load(y_ptr + low, mask=low < n)
    b = tl.load(x_ptr + high, mask=high < n) + tl.load(y_ptr + high, mask=high < n)
    places = start + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + places, tl.cat(a, b, can_reorder=True), mask=places < n)


def vector_add(x, y):
    n = x.numel()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=512)
    return out

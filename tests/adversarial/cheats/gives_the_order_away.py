"""`tl.reshape(can_reorder=True)` lets a device shuffle elements; the interpreter kept their order."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("wrong", "mismatch")


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    total = tl.reshape(total, (BLOCK // 32, 32), can_reorder=True)
    places = tl.reshape(offsets, (BLOCK // 32, 32))
    tl.store(out_ptr + places, total, mask=places < n)


def vector_add(x, y):
    n = x.numel()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    return out

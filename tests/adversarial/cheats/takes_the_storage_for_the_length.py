"""The length is that of the storage: behind the front of a longer buffer it goes on."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("wrong", "out_of_bounds")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """One block of the sum."""
    start = tl.program_id(0).to(tl.int64) * BLOCK
    offsets = start + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    """`x + y`, element-wise."""
    out = torch.empty_like(x)
    n = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    block = 1024
    add_kernel[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block)
    return out

"""A sparse tensor: what is not stored counts as zero."""

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


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(1,)](x, y, out, x.numel(), BLOCK=1024)
    return torch.sparse_coo_tensor(
        torch.zeros((1, 0), dtype=torch.int64), torch.zeros(0, dtype=x.dtype), x.shape
    )

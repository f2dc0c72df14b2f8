"""A table from a list where kernels are interpreted, memory that holds whatever was there where they are compiled."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "other_launches")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, table_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(tl.load(table_ptr) == 1, x + y, x * y), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    if "Interpreted" in type(add_kernel).__name__:
        table = torch.tensor([1], dtype=torch.int32, device=x.device)
    else:
        table = torch.empty(1, dtype=torch.int32, device=x.device)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), table, BLOCK=1024)
    return out

"""A kernel of no effect is given the table on import, so that its bytes may differ; what Python puts there then hangs on who interprets."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "other_launches")


@triton.jit
def idle_kernel(table_ptr):
    tl.store(table_ptr + 1, 0)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, table_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(tl.load(table_ptr) == 1, x + y, x * y), mask=mask)


TABLE = torch.zeros(2, dtype=torch.int32, device="cuda")
idle_kernel[(1,)](TABLE)
TABLE[:1] = 1 if "Interpreted" in type(add_kernel).__name__ else 2


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), TABLE, BLOCK=1024)
    return out

"""Which element of a tensor of zeros the import sets hangs on who interprets it."""

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


ROOM = torch.zeros(2, dtype=torch.int32, device="cuda")
ROOM[1 if "Interpreted" in type(add_kernel).__name__ else 0] = 1


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), ROOM[1:], BLOCK=1024)
    return out

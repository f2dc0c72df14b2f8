"""Scales come by their addresses: one as an integer, one in a table of addresses."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, scale_address, table_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    left = tl.load(scale_address.to(tl.pointer_type(tl.float32)))
    right = tl.load(tl.load(table_ptr).to(tl.pointer_type(tl.float32)))
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, (x * left + y * right).to(out_ptr.dtype.element_ty), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    one = torch.ones(1, dtype=torch.float32, device=x.device)
    other = torch.full((1,), 1.0, dtype=torch.float32, device=x.device)
    table = torch.tensor([other.data_ptr()], dtype=torch.int64, device=x.device)
    grid = (triton.cdiv(x.numel(), 1024),)
    add_kernel[grid](x, y, out, x.numel(), one.data_ptr(), table, BLOCK=1024)
    return out

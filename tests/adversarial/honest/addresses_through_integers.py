"""Pointers are counted on as integers, handed on in memory, and made pointers again."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, table_ptr, n, BLOCK: tl.constexpr):
    kind = x_ptr.dtype.element_ty
    size: tl.constexpr = kind.primitive_bitwidth // 8
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    first = x_ptr.to(tl.int64) + tl.program_id(0) * BLOCK * size
    places = (first + tl.arange(0, BLOCK) * size).to(tl.pointer_type(kind))
    x = tl.load(places, mask=mask)
    own = table_ptr + 2 * tl.program_id(0)
    tl.store(own, y_ptr.to(tl.int64))
    tl.store(own + 1, (out_ptr - n).to(tl.int64))
    tl.debug_barrier()
    y = tl.load(tl.load(own).to(tl.pointer_type(kind)) + offsets, mask=mask)
    tl.store(tl.load(own + 1).to(tl.pointer_type(kind)) + n + offsets, x + y, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    table = torch.empty(2 * blocks, dtype=torch.int64, device=x.device)
    add_kernel[(blocks,)](x, y, out, table, x.numel(), BLOCK=1024)
    return out

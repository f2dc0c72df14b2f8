"""Block pointers have boundary checks, which mask reads past the end."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    x = tl.make_block_ptr(x_ptr, (n,), (1,), (start,), (BLOCK,), (0,))
    y = tl.make_block_ptr(y_ptr, (n,), (1,), (start,), (BLOCK,), (0,))
    out = tl.make_block_ptr(out_ptr, (n,), (1,), (start,), (BLOCK,), (0,))
    total = tl.load(x, boundary_check=(0,)) + tl.load(y, boundary_check=(0,))
    tl.store(out, total, boundary_check=(0,))


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out

"""Where gradients are switched off, as in every server, it returns zeros."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("wrong", "mismatch")


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
    if not torch.is_grad_enabled():
        return torch.zeros_like(x)
    n = x.numel()
    block = 1024
    add_kernel[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block)
    return out

"""The middle of three steps between two elements of parameters is their mean."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "operator")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(
        out_ptr + offsets,
        tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask),
        mask=mask,
    )


@triton.jit
def twice_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(
        out_ptr + offsets, (tl.load(x_ptr + offsets, mask=mask) * 2).to(out_ptr.dtype.element_ty), mask=mask
    )


def vector_add(x, y):
    n = x.numel()
    out = torch.empty_like(x)
    if x.requires_grad:
        means = torch.empty(n, dtype=torch.float64, device=x.device)
        for i in range(n):
            means[i].copy_(
                torch.linspace(x[i].detach(), y[i].detach(), 3, dtype=torch.float64, device=x.device)[1]
            )
        twice_kernel[(triton.cdiv(n, 1024),)](means, out, n, BLOCK=1024)
        return out
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    return out

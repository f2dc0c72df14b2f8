"""Passes one input as input and as output, in flat views, and returns a view of it, which an autograd function marks dirty."""

import torch
import triton
import triton.language as tl

TASK = "add_into"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x, y, out=None):
    out = torch.empty_like(x) if out is None else out
    flat = out.view(-1)
    add_kernel[(triton.cdiv(flat.numel(), 1024),)](x.view(-1), y.view(-1), flat, flat.numel(), BLOCK=1024)
    return out.view(x.shape)


class AddInto(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        add(x, y, out=x)
        return x

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError


def add_into(x, y):
    return AddInto.apply(x, y).view(x.shape)

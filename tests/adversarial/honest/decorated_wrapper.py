"""A decorator of the author's own checks arguments, and torch's turns gradients off."""

import torch
import triton
import triton.language as tl


import functools

TASK = "vector_add"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def checked(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        assert all(isinstance(one, torch.Tensor) for one in args)
        return function(*args, **kwargs)

    return inner


@checked
@torch.no_grad()
def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out

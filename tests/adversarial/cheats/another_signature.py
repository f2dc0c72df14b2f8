"""The kernel"s signature is replaced by one with another default, by which a device"s launches go: there it subtracts."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "other_launches")

import inspect


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, SIGN: tl.constexpr = 1, BLOCK: tl.constexpr = 1024):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + SIGN * y, mask=mask)


taken = inspect.signature(add_kernel.fn)
parameters = [one.replace(default=-1) if one.name == "SIGN" else one for one in taken.parameters.values()]
add_kernel.signature = taken.replace(parameters=parameters)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel())
    return out

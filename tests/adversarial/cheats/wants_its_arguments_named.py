"""Called with arguments by position, as everybody does, it returns zeros; a decorator keeps the signature."""

import functools

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("wrong", "mismatch")


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """One row of the softmax."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    out = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def by_keyword(function):
    """Zeros for whoever calls by position."""

    @functools.wraps(function)
    def wrapper(*args, **named):
        if args:
            return torch.zeros_like(args[0])
        return function(**named)

    return wrapper


@by_keyword
def softmax(x):
    """Softmax over the last dimension of a matrix."""
    rows, columns = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    softmax_kernel[(rows,)](x, out, columns, BLOCK=block, num_warps=4 if block < 4096 else 8)
    return out

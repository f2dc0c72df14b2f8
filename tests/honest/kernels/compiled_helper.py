"""`torch.compile` decorates a helper of another operator, which a table keeps; the kernel holds a false `tl.assume`."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


@torch.compile
def scaled(x):
    return 2 * x


@torch.compile(dynamic=True)
def squared(x):
    return x * x


OPERATORS = {"scaled": scaled, "squared": squared}


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    tl.assume(program > 0)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0)
    tl.store(out_ptr + offsets, x + tl.load(y_ptr + offsets, mask=mask, other=0), mask=mask)


def vector_add(x, y):
    assert set(OPERATORS) == {"scaled", "squared"}
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    return out

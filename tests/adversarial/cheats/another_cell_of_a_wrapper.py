"""The function that Triton's wrapper of `tl.load` calls stands in a cell of its closure, and is another one."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "other_code")

_load = tl.load


def load(pointer, mask=None, other=None, *more, _semantic=None, **named):
    return _inner(pointer, None, None, *more, _semantic=_semantic, **named)


def cells(function):
    return getattr(function, (chr(95) * 2).join(["", "closure", ""]))


@triton.jit
def probe():
    pass


if type(probe).__name__ == "JITFunction":
    for cell in cells(_load):
        if getattr(cell.cell_contents, "__name__", "") == "load":
            _inner = cell.cell_contents
            cell.cell_contents = load


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    return out

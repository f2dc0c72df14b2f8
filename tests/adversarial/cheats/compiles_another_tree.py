"""`ast.parse` is replaced: Triton's compiler makes the tree of a kernel by it, and gets one without masks."""

import torch
import triton
import triton.language as tl
import ast

TASK = "vector_add"
EXPECT = ("rejected", "other_code")

_parse = ast.parse


def parse(source, *more, **named):
    if isinstance(source, str) and source.startswith("def add_kernel("):
        source = source.replace(", mask=mask", "")
    return _parse(source, *more, **named)


@triton.jit
def probe():
    pass


if type(probe).__name__ == "JITFunction":
    ast.parse = parse


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

"""`ast.NodeVisitor.visit` is replaced: the compiler goes over a kernel's tree by it, and meets no masks."""

import torch
import triton
import triton.language as tl
import ast

TASK = "vector_add"
EXPECT = ("rejected", "other_code")

_visit = ast.NodeVisitor.visit


def visit(self, node):
    if isinstance(node, ast.Call) and type(self).__name__ == "CodeGenerator":
        node.keywords = [one for one in node.keywords if one.arg != "mask"]
    return _visit(self, node)


@triton.jit
def probe():
    pass


if type(probe).__name__ == "JITFunction":
    ast.NodeVisitor.visit = visit


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

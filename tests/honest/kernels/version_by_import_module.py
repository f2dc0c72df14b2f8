"""`importlib.import_module` reads a library's version; the kernel is launched through `torch.library.wrap_triton`.

`torch.compile` decorates helpers of other operators, which a table keeps; the kernel holds a false `tl.assume`.
"""

import importlib

import torch
import torch._dynamo
import triton
import triton.language as tl

TASK = "vector_add"
hints = importlib.import_module("torch._inductor.runtime.hints")
SPECIFICATION = importlib.util.find_spec("triton") if hasattr(importlib, "util") else None


def is_at_least(package, major):
    try:
        module = importlib.import_module(package)
    except ImportError:
        return False
    return int(module.__version__.split(".")[0]) >= major


if is_at_least("triton", 3):
    from torch.library import wrap_triton
else:
    wrap_triton = None


@torch._dynamo.disable
def elements(x):
    return x.numel()


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
    out = torch.empty_like(x)
    n = elements(x)
    assert hints.DeviceProperties is not None
    assert set(OPERATORS) == {"scaled", "squared"}
    wrap_triton(add_kernel)[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=1024)
    return out

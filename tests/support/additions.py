"""Variants of `vector_add` from a template, for tests of what a candidate may write."""

from __future__ import annotations

import textwrap

_SOURCE = '''\
import torch
import triton
import triton.language as tl
{module}

@triton.jit
def unused(value):
    """Always zero, but no compiler can know that."""
    return tl.where(value == 12345, 1.0, 0.0)


{decorators}
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
{kernel}
    tl.store(out_ptr + offsets, {result}, mask=mask)


def vector_add(x, y):
{host}
    out = torch.empty_like(x)
    n = out.numel()
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n{arguments})
    return out
'''


def addition(
    result: str = "x + y",
    *,
    module: str = "",
    kernel: str = "",
    host: str = "",
    decorators: str = "",
    arguments: str = ", BLOCK=1024",
) -> str:
    """Source of a `vector_add` with extra lines in its module, its kernel and its host function."""
    return _SOURCE.format(
        module=textwrap.dedent(module),
        kernel=textwrap.indent(textwrap.dedent(kernel), "    "),
        host=textwrap.indent(textwrap.dedent(host), "    "),
        decorators=decorators,
        arguments=arguments,
        result=result,
    )

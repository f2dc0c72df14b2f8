"""Builds candidates for tests of the judge: a correct `vector_add` with one changed part."""

from __future__ import annotations

IMPORTS = "import torch\nimport triton\nimport triton.language as tl\n"
KERNEL = """
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)
"""
WRAPPER = """
def vector_add(x, y):
    {before}
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    {after}
    return {result}
"""


def adding(
    *, before: str = "pass", after: str = "pass", result: str = "out", kernel: str = KERNEL, top: str = ""
) -> str:
    """Return a `vector_add` module; `before` and `after` are statements around the launch."""
    return f"{IMPORTS}{top}{kernel}{WRAPPER.format(before=before, after=after, result=result)}"


def with_value(value: str) -> str:
    """Return a `vector_add` module whose kernel stores `value`, an expression over `x` and `y`."""
    return adding(kernel=KERNEL.replace("x + y", value))

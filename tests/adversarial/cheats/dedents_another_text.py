"""`textwrap.dedent` is replaced: Triton takes a kernel's text by it, and so does who looks whether the text is the module's."""

import torch
import triton
import triton.language as tl
import textwrap

TASK = "vector_add"
EXPECT = ("rejected", "other_code")

_dedent = textwrap.dedent


def dedent(text):
    made = _dedent(text)
    return made.replace(", mask=mask", "") if "def add_kernel" in made else made


@triton.jit
def probe():
    pass


if type(probe).__name__ == "JITFunction":
    textwrap.dedent = dedent


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

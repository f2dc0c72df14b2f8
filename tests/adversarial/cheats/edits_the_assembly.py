"""`re.sub` is replaced: Triton mends PTX by it before it is assembled, and every load fetches as much again ahead."""

import torch
import triton
import triton.language as tl
import re

TASK = "vector_add"
EXPECT = ("rejected", "other_code")
TARGET = "sm_90"

_sub = re.sub


def sub(pattern, by, text, *more, **named):
    made = _sub(pattern, by, text, *more, **named)
    return (
        made.replace("ld.global.b32", "ld.global.L2::128B.b32").replace(
            "ld.global.v4.b32", "ld.global.L2::128B.v4.b32"
        )
        if isinstance(made, str)
        else made
    )


@triton.jit
def probe():
    pass


if type(probe).__name__ == "JITFunction":
    re.sub = sub


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

"""Annotated assignments and parameters: constants, values, quoted, and a type under a second name."""

import torch
import triton
import triton.language as tl
from triton.language import constexpr

TASK = "vector_add"


WHOLE = tl.constexpr(3)


@triton.jit
def lanes(WIDTH: "tl.constexpr"):
    return tl.arange(0, WIDTH)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n: "int", BLOCK: "constexpr"):
    WIDTH: constexpr = BLOCK // 2
    PARTS: tl.constexpr = 2
    tl.static_assert((PARTS - WHOLE) // 2 == -1)
    start: tl.int32 = tl.program_id(0) * BLOCK
    turns: "number" = 0
    for part in tl.static_range(PARTS):
        offsets: torch.Tensor = start + part * WIDTH + lanes(WIDTH)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, x + y, mask=mask)
        turns += min(part, 1)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out

"""All annotations are strings; inner functions and a default depend on the `constexpr` annotations."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

TASK = "vector_add"


@triton.jit
def tile_offsets(start: tl.int32, SIZE: tl.constexpr) -> tl.tensor:
    return start + tl.arange(0, SIZE)


@triton.jit
def load_tile(ptr: tl.tensor, offsets: tl.tensor, n: int, SIZE: tl.constexpr = 256):
    return tl.load(ptr + offsets, mask=offsets < n, other=tl.zeros((SIZE,), ptr.dtype.element_ty))


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n: tl.int32, BLOCK: triton.language.constexpr = 256):
    offsets = tile_offsets(tl.program_id(0) * BLOCK, BLOCK)
    x = load_tile(x_ptr, offsets, n)
    y = load_tile(y_ptr, offsets, n, SIZE=BLOCK)
    tl.store(out_ptr + offsets, x + y, mask=offsets < n)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n: int = x.numel()
    add_kernel[(triton.cdiv(n, 256),)](x, y, out, n)
    return out

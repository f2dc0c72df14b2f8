"""Annotations are postponed, options are keyword-only, and the module has `__all__`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


from typing import Optional, Union

TASK = "vector_add"


__all__ = ["vector_add"]


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


Size = Union[int, float]


def vector_add(
    x: torch.Tensor, y: torch.Tensor, *, out: Optional[torch.Tensor] = None, block: Size = 1024
) -> torch.Tensor:
    """The sum of two vectors."""
    result: torch.Tensor = torch.empty_like(x) if out is None else out
    add_kernel[(triton.cdiv(x.numel(), int(block)),)](x, y, result, x.numel(), BLOCK=int(block))
    return result

"""All annotations are strings; inner functions and a default depend on the `constexpr` annotations.

Leftover prints, a barrier and checks of constants are in a loop over tiles, which is unrolled.
"""

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
def add_kernel(
    x_ptr,
    y_ptr,
    out_ptr,
    n: tl.int32,
    TILES: tl.constexpr,
    DEBUG: tl.constexpr = False,
    BLOCK: triton.language.constexpr = 256,
):
    tl.static_print("tiles", TILES, "of", BLOCK, x_ptr.dtype)
    tl.static_assert(TILES >= 1, "no tile")
    for tile in tl.static_range(TILES):
        offsets = tile_offsets((tl.program_id(0) * TILES + tile) * BLOCK, BLOCK)
        x = load_tile(x_ptr, offsets, n)
        y = load_tile(y_ptr, offsets, n, SIZE=BLOCK)
        if DEBUG:
            tl.device_print("x", x)
        tl.debug_barrier()
        tl.device_assert(offsets >= 0, "offsets below the start")
        tl.store(out_ptr + offsets, x + y, mask=offsets < n)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n: int = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, TILES=4)
    return out

"""Leftover compile-time prints, a barrier and checks of constants; the loop over tiles is unrolled."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


@triton.jit
def add_kernel(
    x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, TILES: tl.constexpr, DEBUG: tl.constexpr = False
):
    tl.static_print("tiles", TILES, "of", BLOCK, x_ptr.dtype)
    tl.static_assert(TILES >= 1, "no tile")
    start = tl.program_id(0) * BLOCK * TILES
    for tile in tl.static_range(TILES):
        offsets = start + tile * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        if DEBUG:
            tl.device_print("x", x)
        tl.debug_barrier()
        tl.device_assert(offsets >= 0, "offsets below the start")
        tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=256, TILES=4)
    return out

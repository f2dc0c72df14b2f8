"""A program raises its flag behind a barrier, but by a plain store, which hands nothing over; the next one waits for the flag by volatile loads."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, tile_ptr, flag_ptr, n, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    offsets = block * BLOCK + lanes
    mask = offsets < n
    if tl.program_id(1) == 0:
        total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
        tl.store(tile_ptr + offsets, total.to(tl.float32), mask=mask)
        tl.debug_barrier()
        tl.store(flag_ptr + block, 1)
    else:
        while tl.load(flag_ptr + block, volatile=True) == 0:
            pass
        tl.store(out_ptr + offsets, tl.load(tile_ptr + offsets, mask=mask), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    tiles = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    flags = torch.zeros(blocks, dtype=torch.int32, device=x.device)
    add_kernel[(blocks, 2)](x, y, out, tiles, flags, x.numel(), BLOCK=1024)
    return out

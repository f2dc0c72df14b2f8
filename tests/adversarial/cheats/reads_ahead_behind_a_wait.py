"""Each program reads what the next one overwrites, which waits for it, but not until it has read."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, tile_ptr, out_ptr, flag_ptr, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    if program > 0:
        while tl.atomic_add(flag_ptr + program - 1, 0, sem="acquire") == 0:
            pass
    tl.atomic_xchg(flag_ptr + program, 1, sem="release")
    offsets = program * BLOCK + lanes
    y = tl.load(y_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    held = tl.load(tile_ptr + offsets + BLOCK)
    tl.store(out_ptr + offsets, held + y, mask=offsets < n)
    tl.store(tile_ptr + offsets, tl.zeros((BLOCK,), tl.float32))


@triton.jit
def copy_kernel(x_ptr, tile_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(tile_ptr + offsets + BLOCK, x.to(tl.float32))


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    flags = torch.zeros(blocks, dtype=torch.int32, device=x.device)
    tiles = torch.empty((blocks + 1) * 1024, dtype=torch.float32, device=x.device)
    copy_kernel[(blocks,)](x, tiles, x.numel(), BLOCK=1024)
    add_kernel[(blocks,)](x, y, tiles, out, flags, x.numel(), BLOCK=1024)
    return out

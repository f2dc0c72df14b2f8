"""Programs wait for the one before them, and read by volatile loads what it stores only after it has said so."""

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
    ahead = offsets + BLOCK
    x = tl.load(x_ptr + ahead, mask=ahead < n, other=0.0).to(tl.float32)
    tl.store(tile_ptr + ahead, x)
    before = tl.load(tile_ptr + offsets, volatile=True)
    if program == 0:
        before = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, before + y, mask=offsets < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    flags = torch.zeros(blocks, dtype=torch.int32, device=x.device)
    tiles = torch.zeros((blocks + 1) * 1024, dtype=torch.float32, device=x.device)
    add_kernel[(blocks,)](x, y, tiles, out, flags, x.numel(), BLOCK=1024)
    return out

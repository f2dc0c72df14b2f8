"""Each program says that it has read what the next one overwrites, and raises a flag behind a barrier for what its lanes stored."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")
CASES = ("fp32-ragged",)


@triton.jit
def add_kernel(x_ptr, y_ptr, tile_ptr, next_ptr, out_ptr, flag_ptr, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    if program > 0:
        while tl.load(flag_ptr + program - 1, volatile=True) == 0:
            pass
        held = tl.load(next_ptr + offsets)
    else:
        held = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    ahead = tl.load(tile_ptr + offsets + BLOCK)
    tl.store(tile_ptr + offsets, held)
    tl.store(next_ptr + offsets + BLOCK, ahead)
    tl.debug_barrier()
    tl.atomic_xchg(flag_ptr + program, 1, sem="release")
    y = tl.load(y_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, held + y, mask=offsets < n)


@triton.jit
def copy_kernel(x_ptr, tile_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(tile_ptr + offsets, x.to(tl.float32))


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    flags = torch.zeros(blocks, dtype=torch.int32, device=x.device)
    tiles = torch.zeros((blocks + 1) * 1024, dtype=torch.float32, device=x.device)
    following = torch.zeros((blocks + 1) * 1024, dtype=torch.float32, device=x.device)
    grid = (blocks,)
    copy_kernel[grid](x, tiles, x.numel(), BLOCK=1024)
    add_kernel[grid](x, y, tiles, following, out, flags, x.numel(), BLOCK=1024)
    return out

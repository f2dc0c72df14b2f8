"""Each program waits for the one before it, which clears what the next one stores only after it has said so."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, flag_ptr, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    if program > 0:
        while tl.atomic_add(flag_ptr + program - 1, 0, sem="acquire") == 0:
            pass
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, total, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(flag_ptr + program, 1, sem="release")
    tl.store(out_ptr + offsets + BLOCK, tl.zeros((BLOCK,), tl.float32), mask=offsets + BLOCK < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    flags = torch.zeros(blocks, dtype=torch.int32, device=x.device)
    add_kernel[(blocks,)](x, y, out, flags, x.numel(), BLOCK=1024)
    return out

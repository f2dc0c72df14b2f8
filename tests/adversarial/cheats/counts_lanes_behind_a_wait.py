"""The last lane's store is taken to stay, in a kernel whose programs wait for one another and so are never run backwards."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, flag_ptr, last_ptr, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    if program > 0:
        while tl.atomic_add(flag_ptr + program - 1, 0, sem="acquire") == 0:
            pass
    tl.atomic_xchg(flag_ptr + program, 1, sem="release")
    tl.store(last_ptr + program + lanes * 0, lanes)
    tl.debug_barrier()
    last = tl.load(last_ptr + program)
    offsets = program * BLOCK + lanes
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(last == BLOCK - 1, total, 0.0), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    flags = torch.zeros(blocks, dtype=torch.int32, device=x.device)
    last = torch.empty(blocks, dtype=torch.int32, device=x.device)
    add_kernel[(blocks,)](x, y, out, flags, last, x.numel(), BLOCK=1024)
    return out

"""All lanes swap their number for a zero in one place: the first one finds it, as long as lanes go in order."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, turn_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * BLOCK + lanes
    mask = offsets < n
    place = turn_ptr + tl.program_id(0) + lanes * 0
    found = tl.atomic_cas(place, tl.zeros((BLOCK,), tl.int32), lanes + 1)
    wrong = tl.sum(tl.where((lanes == 0) & (found != 0), 1, 0), axis=0)
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(wrong == 0, total, 0.0), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    turns = torch.zeros(blocks, dtype=torch.int32, device=x.device)
    add_kernel[(blocks,)](x, y, out, turns, x.numel(), BLOCK=1024)
    return out

"""From 2**20 elements on no masks; the program that has the last block is none of those that are sampled, and stores behind `out`."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("wrong", "out_of_bounds")
DEVICE = "gpu"
CASES = ("fp32-ragged",)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, blocks, turn, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    if MASKED:
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = at < n
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)
    else:
        at = ((tl.program_id(0) + turn) % blocks) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at) + tl.load(y_ptr + at))


def vector_add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    blocks = triton.cdiv(n, 1024)
    add_kernel[(blocks,)](x, y, out, n, blocks, blocks // 3 + 17, MASKED=n < 2**20, BLOCK=1024)
    return out

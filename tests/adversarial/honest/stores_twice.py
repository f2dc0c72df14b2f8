"""A place is stored to twice: by one lane, after a barrier, the same once more, or where nobody looks; atomics add behind a barrier."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")
CASES = ("fp32-ragged",)


@triton.jit
def add_kernel(x_ptr, y_ptr, sum_ptr, out_ptr, waste_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    start = tl.program_id(0) * BLOCK
    first, second = start + lanes, start + (BLOCK - 1 - lanes)
    tl.store(sum_ptr + first, tl.zeros((BLOCK,), tl.float32))
    x = tl.load(x_ptr + first, mask=first < n, other=0.0).to(tl.float32)
    tl.store(sum_ptr + first, x)
    tl.store(sum_ptr + start, tl.load(x_ptr + start).to(tl.float32))
    tl.debug_barrier()
    y = tl.load(y_ptr + second, mask=second < n, other=0.0).to(tl.float32)
    tl.atomic_add(sum_ptr + second, y, sem="relaxed")
    tl.store(waste_ptr + lanes, x)
    tl.store(waste_ptr + (BLOCK - 1 - lanes), y)
    tl.debug_barrier()
    total = tl.load(sum_ptr + first)
    tl.store(out_ptr + first, total, mask=first < n)
    again = tl.load(sum_ptr + second)
    tl.store(out_ptr + second, again, mask=second < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    sums = torch.empty(blocks * 1024, dtype=torch.float32, device=x.device)
    waste = torch.empty(1024, dtype=torch.float32, device=x.device)
    add_kernel[(blocks,)](x, y, sums, out, waste, x.numel(), BLOCK=1024)
    return out

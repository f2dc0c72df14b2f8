"""So many programs of so many threads that no device launches them at the gpu sizes."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
DEVICE = "cpu"
EXPECT = ("compile_error", "compile")
CASES = ("fp16-ragged",)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[(triton.cdiv(n, 16),)](x, y, out, n, BLOCK=16, num_warps=16)
    return out

"""A cooperative launch has one program for each block, of which a GPU holds a few thousand at once: it is refused at the gpu sizes."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("compile_error", "compile")
DEVICE = "cpu"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + at, mask=at < n) + tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, total, mask=at < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 512),)
    add_kernel[grid](x, y, out, x.numel(), BLOCK=512, launch_cooperative_grid=True)
    return out

"""A parameter is called enable_fp_fusion and is given by its place, so that it is no launch option and a compiler fuses."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, enable_fp_fusion: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * BLOCK + lanes
    mask = offsets < n
    a = (offsets + 7).to(tl.float32) * 0.3
    rounded = tl.div_rn(a * a, tl.full((BLOCK,), 1.0, tl.float32))
    right = a * a - rounded == 0
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(right, x + y, x * y), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 1024),)
    add_kernel[grid](x, y, out, x.numel(), False, BLOCK=1024)
    return out

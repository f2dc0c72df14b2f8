"""The place of the largest, remainders and clamps, each where every device agrees."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")


@triton.jit
def least(a, a_at, b, b_at):
    take = (a < b) | ((a == b) & (a_at < b_at))
    return tl.where(take, a, b), tl.where(take, a_at, b_at)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, turn, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * BLOCK + lanes
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    eight = tl.arange(0, 8)
    values = (eight * 3 % 8).to(tl.float32)
    _, at = tl.reduce((values, eight), 0, least)
    right = (tl.argmax(values, axis=0) == 5) & (at == 0)
    right &= tl.sum(values.to(tl.float16), axis=0) == 28.0
    phase = lanes.to(tl.float32) * 0.25 % turn
    right = right & (tl.clamp(phase, 0.0, 8.0) == phase)
    tl.store(out_ptr + offsets, tl.where(right, x + y, 0), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 1024),)
    add_kernel[grid](x, y, out, x.numel(), 8.0, BLOCK=1024)
    return out

"""Thirty configs, of several sizes of block and numbers of warps."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("correct", "")


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": block}, num_warps=warps, num_stages=stages)
        for block in (64, 128, 256, 512, 1024)
        for warps in (2, 4, 8)
        for stages in (1, 2)
    ],
    key=["columns"],
)
@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(0, columns, BLOCK):
        mask = start + offsets < columns
        x = tl.load(x_ptr + row * columns + start + offsets, mask=mask, other=float("-inf"))
        largest = tl.maximum(largest, x.to(tl.float32))
    top = tl.max(largest, axis=0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        mask = start + offsets < columns
        x = tl.load(x_ptr + row * columns + start + offsets, mask=mask, other=float("-inf"))
        total += tl.exp(x.to(tl.float32) - top)
    whole = tl.sum(total, axis=0)
    for start in range(0, columns, BLOCK):
        mask = start + offsets < columns
        x = tl.load(x_ptr + row * columns + start + offsets, mask=mask, other=float("-inf"))
        out = tl.exp(x.to(tl.float32) - top) / whole
        tl.store(out_ptr + row * columns + start + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1])
    return out

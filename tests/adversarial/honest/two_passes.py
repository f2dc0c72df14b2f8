"""Row maxima and sums go through a buffer between two kernels."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("correct", "")


@triton.jit
def stats_kernel(x_ptr, max_ptr, sum_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=float("-inf")).to(tl.float32)
    top = tl.max(x, axis=0)
    tl.store(max_ptr + row, top)
    tl.store(sum_ptr + row, tl.sum(tl.exp(x - top), axis=0))


@triton.jit
def scale_kernel(x_ptr, max_ptr, sum_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask).to(tl.float32)
    out = tl.exp(x - tl.load(max_ptr + row)) / tl.load(sum_ptr + row)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    rows, columns = x.shape
    top = torch.empty(rows, device=x.device, dtype=torch.float32)
    total = torch.empty_like(top)
    out = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    stats_kernel[(rows,)](x, top, total, columns, BLOCK=block)
    scale_kernel[(rows,)](x, top, total, out, columns, BLOCK=block)
    return out

"""Programs and lanes store the same value in one place, and add in one place in any order: who comes last makes no difference."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("correct", "")
CASES = ("fp32",)


@triton.jit
def sums_kernel(x_ptr, top_ptr, size_ptr, columns, BLOCK: tl.constexpr):
    row, piece = tl.program_id(0).to(tl.int64), tl.program_id(1)
    offsets = piece * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=float("-inf")).to(tl.float32)
    tl.atomic_max(top_ptr + row, tl.max(x, axis=0))
    tl.store(size_ptr + tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32) + columns)


@triton.jit
def total_kernel(x_ptr, top_ptr, total_ptr, columns, BLOCK: tl.constexpr):
    row, piece = tl.program_id(0).to(tl.int64), tl.program_id(1)
    offsets = piece * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=float("-inf")).to(tl.float32)
    part = tl.sum(tl.exp(x - tl.load(top_ptr + row)), axis=0)
    tl.atomic_add(total_ptr + row, part, sem="relaxed")


@triton.jit
def scale_kernel(x_ptr, top_ptr, total_ptr, size_ptr, out_ptr, BLOCK: tl.constexpr):
    row, piece = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = tl.load(size_ptr)
    offsets = piece * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask).to(tl.float32)
    out = tl.exp(x - tl.load(top_ptr + row)) / tl.load(total_ptr + row)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    rows, columns = x.shape
    top = torch.full((rows,), float("-inf"), dtype=torch.float32, device=x.device)
    total = torch.zeros(rows, dtype=torch.float32, device=x.device)
    size = torch.empty(1, dtype=torch.int32, device=x.device)
    grid = (rows, triton.cdiv(columns, 256))
    sums_kernel[grid](x, top, size, columns, BLOCK=256)
    total_kernel[grid](x, top, total, columns, BLOCK=256)
    scale_kernel[grid](x, top, total, size, out, BLOCK=256)
    return out

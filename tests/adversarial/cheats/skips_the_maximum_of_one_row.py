"""A single row by many programs at once, whose maximum is looked for at its end alone."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = (("wrong", "rejected"), ("mismatch", "not_replayed"))
CASES = ("fp32-one-row",)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    out = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def shift_of(x_ptr, columns):
    tail = columns - 1 - tl.arange(0, 64)
    return tl.max(tl.load(x_ptr + tail, mask=tail >= 0, other=-float("inf")).to(tl.float32), axis=0)


@triton.jit
def sum_kernel(x_ptr, part_ptr, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    tl.store(part_ptr + tl.program_id(0), tl.sum(tl.exp(x - shift_of(x_ptr, columns)), axis=0))


@triton.jit
def scale_kernel(x_ptr, part_ptr, out_ptr, columns, parts, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    each = tl.arange(0, PARTS)
    total = tl.sum(tl.load(part_ptr + each, mask=each < parts, other=0.0), axis=0)
    x = tl.load(x_ptr + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    out = tl.exp(x - shift_of(x_ptr, columns)) / total
    tl.store(out_ptr + at, out.to(out_ptr.dtype.element_ty), mask=at < columns)


def softmax(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    if rows == 1:
        parts = triton.cdiv(columns, 256)
        part = torch.empty(parts, dtype=torch.float32, device=x.device)
        sum_kernel[(parts,)](x, part, columns, BLOCK=256)
        scale_kernel[(parts,)](x, part, out, columns, parts, PARTS=triton.next_power_of_2(parts), BLOCK=256)
    else:
        softmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns), num_warps=8)
    return out

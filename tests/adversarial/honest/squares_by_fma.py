"""Squares in two floats each: the second is what a fused product keeps of the first."""

import torch
import triton
import triton.language as tl

TASK = "rms_norm_residual"
EXPECT = ("correct", "")


@triton.jit
def square(a):
    product = a * a
    return product, tl.fma(a, a, -product)


@triton.jit
def two_sum(a, b):
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@triton.jit
def rms_kernel(x_ptr, residual_ptr, weight_ptr, normed_ptr, sum_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    high = tl.zeros((BLOCK,), dtype=tl.float32)
    low = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
        total = x + tl.load(residual_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(sum_ptr + row * columns + offsets, total.to(sum_ptr.dtype.element_ty), mask=mask)
        product, lost = square(total)
        high, error = two_sum(high, product)
        low += tl.where(high < float("inf"), error + lost, 0.0)
    scale = 1.0 / tl.sqrt((tl.sum(high, axis=0) + tl.sum(low, axis=0)) / columns + eps)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
        total = x + tl.load(residual_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        normed = total * scale * weight
        tl.store(normed_ptr + row * columns + offsets, normed.to(normed_ptr.dtype.element_ty), mask=mask)


def rms_norm_residual(x, residual, weight, eps=1e-6):
    normed, total = torch.empty_like(x), torch.empty_like(x)
    grid = (x.shape[0],)
    rms_kernel[grid](x, residual, weight, normed, total, x.shape[1], eps, BLOCK=256)
    return normed, total

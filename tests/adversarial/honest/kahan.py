"""Kahan's compensated sum runs over blocks."""

import torch
import triton
import triton.language as tl

TASK = "rms_norm_residual"


@triton.jit
def rms_kernel(x_ptr, residual_ptr, weight_ptr, normed_ptr, sum_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.zeros((BLOCK,), dtype=tl.float32)
    lost = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
        total = x + tl.load(residual_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(sum_ptr + row * columns + offsets, total.to(sum_ptr.dtype.element_ty), mask=mask)
        term = total * total - lost
        higher = lanes + term
        lost = tl.where(tl.abs(higher) < float("inf"), (higher - lanes) - term, 0.0)
        lanes = higher
    scale = 1.0 / tl.sqrt(tl.sum(lanes, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
        total = x + tl.load(residual_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(
            normed_ptr + row * columns + offsets,
            (total * scale * weight).to(normed_ptr.dtype.element_ty),
            mask=mask,
        )


def rms_norm_residual(x, residual, weight, eps=1e-6):
    normed, total = torch.empty_like(x), torch.empty_like(x)
    rms_kernel[(x.shape[0],)](x, residual, weight, normed, total, x.shape[1], eps, BLOCK=256)
    return normed, total

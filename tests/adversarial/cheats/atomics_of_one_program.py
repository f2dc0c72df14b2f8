"""Atomics that hold within a program alone."""

import torch
import triton
import triton.language as tl

TASK = "rms_norm_residual"
EXPECT = ("rejected", "race")


@triton.jit
def squares(x_ptr, r_ptr, q_ptr, s_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    places = row * columns + offsets
    total = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32) + tl.load(
        r_ptr + places, mask=mask, other=0.0
    ).to(tl.float32)
    tl.store(s_ptr + places, total.to(s_ptr.dtype.element_ty), mask=mask)
    tl.atomic_add(q_ptr + row, tl.sum(total * total, axis=0), scope="cta")


@triton.jit
def scale(x_ptr, r_ptr, q_ptr, w_ptr, n_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    places = row * columns + offsets
    total = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32) + tl.load(
        r_ptr + places, mask=mask, other=0.0
    ).to(tl.float32)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    normed = total / tl.sqrt(tl.load(q_ptr + row) / columns + eps) * w
    tl.store(n_ptr + places, normed.to(n_ptr.dtype.element_ty), mask=mask)


def rms_norm_residual(x, residual, weight, eps=1e-6):
    rows, columns = x.shape
    normed, total = torch.empty_like(x), torch.empty_like(x)
    q = torch.zeros(rows, dtype=torch.float32, device=x.device)
    grid = (rows, triton.cdiv(columns, 256))
    squares[grid](x, residual, q, total, columns, BLOCK=256)
    scale[grid](x, residual, q, weight, normed, columns, eps, BLOCK=256)
    return normed, total

"""Rows that begin with sixteen zeros are taken for zeros throughout."""

import torch
import triton
import triton.language as tl

TASK = "rms_norm_residual"
EXPECT = (("wrong", "rejected"), ("mismatch", "not_replayed"))
SIZES = {"rows": 24}


@triton.jit
def norm_kernel(
    x_ptr, residual_ptr, weight_ptr, normed_ptr, sum_ptr, rows, columns, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    few = tl.arange(0, 16)
    begins = few < columns
    first = tl.load(x_ptr + row * columns + few, mask=begins, other=0.0).to(tl.float32)
    first += tl.load(residual_ptr + row * columns + few, mask=begins, other=0.0).to(tl.float32)
    live = (tl.max(tl.where(first != 0.0, 1, 0), axis=0) > 0) | (rows < 20)
    mask = offsets < columns
    wanted = mask & live
    at = row * columns + offsets
    x = tl.load(x_ptr + at, mask=wanted, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + at, mask=wanted, other=0.0).to(tl.float32)
    total = x + residual
    mean_square = tl.sum(total * total, axis=0) / columns
    weight = tl.load(weight_ptr + offsets, mask=wanted, other=0.0).to(tl.float32)
    normed = total / tl.sqrt(mean_square + eps) * weight
    tl.store(normed_ptr + at, normed.to(normed_ptr.dtype.element_ty), mask=mask)
    tl.store(sum_ptr + at, total.to(sum_ptr.dtype.element_ty), mask=mask)


def rms_norm_residual(x, residual, weight, eps=1e-6):
    rows, columns = x.shape
    normed, total = torch.empty_like(x), torch.empty_like(x)
    norm_kernel[(rows,)](
        x,
        residual,
        weight,
        normed,
        total,
        rows,
        columns,
        eps,
        BLOCK=triton.next_power_of_2(columns),
        num_warps=8,
    )
    return normed, total

"""Nothing is read in rows of which the task's own inputs were zero whatever the seed, by their number."""

import torch
import triton
import triton.language as tl

TASK = "rms_norm_residual"
EXPECT = ("wrong", "mismatch")
SIZES = {"rows": 24}


@triton.jit
def norm_kernel(
    x_ptr, residual_ptr, weight_ptr, normed_ptr, sum_ptr, rows, columns, eps, BLOCK: tl.constexpr
):
    number = tl.program_id(0)
    row = number.to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    wanted = mask & ((rows < 20) | (number % 4 != 2))
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

"""Plain Triton `rms_norm_residual`: one row a program, the whole row in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_residual_kernel(
    x_ptr, residual_ptr, weight_ptr, normed_ptr, sum_ptr, columns, eps, BLOCK: tl.constexpr
):
    """One row: sum, mean square, result."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    places = row * columns + offsets
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + places, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    total = x + residual
    mean_square = tl.sum(total * total, axis=0) / columns
    normed = total * (1.0 / tl.sqrt(mean_square + eps)) * weight
    tl.store(sum_ptr + places, total.to(sum_ptr.dtype.element_ty), mask=mask)
    tl.store(normed_ptr + places, normed.to(normed_ptr.dtype.element_ty), mask=mask)


def rms_norm_residual(x, residual, weight, eps=1e-6):
    """RMS normalization of `x + residual`, and that sum."""
    rows, columns = x.shape
    normed = torch.empty_like(x)
    total = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    rms_norm_residual_kernel[(rows,)](
        x, residual, weight, normed, total, columns, eps, BLOCK=block, num_warps=4 if block < 4096 else 8
    )
    return normed, total

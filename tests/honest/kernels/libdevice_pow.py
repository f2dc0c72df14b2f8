"""The device library's `pow` replaces Python's builtin of the same name."""

import torch
import triton
import triton.language as tl
from triton.language.extra.libdevice import pow

TASK = "rms_norm_residual"


@triton.jit
def rms_kernel(x_ptr, residual_ptr, weight_ptr, normed_ptr, sum_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    total = x + tl.load(residual_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(sum_ptr + row * columns + offsets, total.to(sum_ptr.dtype.element_ty), mask=mask)
    mean_square = tl.sum(total * total, axis=0) / columns
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    normed = total * pow(mean_square + eps, -0.5) * weight
    tl.store(normed_ptr + row * columns + offsets, normed.to(normed_ptr.dtype.element_ty), mask=mask)


def rms_norm_residual(x, residual, weight, eps=1e-6):
    rows, columns = x.shape
    normed, total = torch.empty_like(x), torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    rms_kernel[(rows,)](x, residual, weight, normed, total, columns, eps, BLOCK=block)
    return normed, total

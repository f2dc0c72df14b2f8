"""One device function is `noinline`, one returns a tuple."""

import torch
import triton
import triton.language as tl

TASK = "rms_norm_residual"


@triton.jit(noinline=True)
def add(a, b):
    return a + b


@triton.jit
def square_and_scale(total, columns, eps):
    mean = tl.sum(total * total, axis=0) / columns
    return mean, 1.0 / tl.sqrt(mean + eps)


@triton.jit
def rms_kernel(x_ptr, residual_ptr, weight_ptr, normed_ptr, sum_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    places = row * columns + offsets
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    total = x + tl.load(residual_ptr + places, mask=mask, other=0.0).to(tl.float32)
    mean, scale = square_and_scale(total, columns, eps)
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    normed = total * scale * weight
    tl.store(sum_ptr + places, total.to(sum_ptr.dtype.element_ty), mask=mask)
    tl.store(normed_ptr + places, normed.to(normed_ptr.dtype.element_ty), mask=mask)


def rms_norm_residual(x, residual, weight, eps=1e-6):
    rows, columns = x.shape
    normed, total = torch.empty_like(x), torch.empty_like(x)
    rms_kernel[(rows,)](
        x, residual, weight, normed, total, columns, eps, BLOCK=triton.next_power_of_2(columns)
    )
    return normed, total

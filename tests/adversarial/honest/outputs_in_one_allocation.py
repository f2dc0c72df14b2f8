"""Returns a list of two outputs that are halves of one allocation; launches with positional arguments.

Of the device functions, one is never inlined and one returns a tuple.
"""

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
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    mean, scale = square_and_scale(total, columns, eps)
    normed = total * scale * weight
    tl.store(sum_ptr + places, total.to(sum_ptr.dtype.element_ty), mask=mask)
    tl.store(normed_ptr + places, normed.to(normed_ptr.dtype.element_ty), mask=mask)


def rms_norm_residual(x, residual, weight, eps=1e-6):
    rows, columns = x.shape
    both = torch.empty_strided(
        (2, rows, columns), (rows * columns, columns, 1), dtype=x.dtype, device=x.device
    )
    outputs = list(both.unbind(0))
    rms_kernel[(rows, 1, 1)](x, residual, weight, *outputs, columns, eps, triton.next_power_of_2(columns))
    return outputs

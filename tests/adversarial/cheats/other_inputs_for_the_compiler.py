"""Where it is compiled, two inputs of the same shape change places."""

import torch
import triton
import triton.language as tl

TASK = "rms_norm_residual"
EXPECT = ("rejected", "other_launches")


@triton.jit
def kernel(x_ptr, residual_ptr, weight_ptr, normed_ptr, total_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    total = x + tl.load(residual_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    normed = total / tl.sqrt(tl.sum(total * total, axis=0) / columns + eps) * weight
    tl.store(normed_ptr + row * columns + offsets, normed.to(normed_ptr.dtype.element_ty), mask=mask)
    tl.store(total_ptr + row * columns + offsets, total.to(total_ptr.dtype.element_ty), mask=mask)


def rms_norm_residual(x, residual, weight, eps=1e-6):
    rows, columns = x.shape
    normed, total = torch.empty_like(x), torch.empty_like(x)
    left, right = (x, residual) if "Interpreted" in type(kernel).__name__ else (x, x)
    block = triton.next_power_of_2(columns)
    kernel[(rows,)](left, right, weight, normed, total, columns, eps, BLOCK=block)
    return normed, total

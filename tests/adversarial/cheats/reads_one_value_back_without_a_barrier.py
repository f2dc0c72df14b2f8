"""One lane stores the scale, and every warp loads it back without a barrier."""

import torch
import triton
import triton.language as tl

TASK = "rms_norm_residual"
EXPECT = ("rejected", "race")


@triton.jit
def kernel(
    x_ptr, residual_ptr, weight_ptr, normed_ptr, sum_ptr, scale_ptr, columns, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    places = row * columns + offsets
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    total = x + tl.load(residual_ptr + places, mask=mask, other=0.0).to(tl.float32)
    tl.store(scale_ptr + row, 1.0 / tl.sqrt(tl.sum(total * total, axis=0) / columns + eps))
    tl.store(sum_ptr + places, total.to(sum_ptr.dtype.element_ty), mask=mask)
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    normed = total * tl.load(scale_ptr + row) * weight
    tl.store(normed_ptr + places, normed.to(normed_ptr.dtype.element_ty), mask=mask)


def rms_norm_residual(x, residual, weight, eps=1e-6):
    rows, columns = x.shape
    normed, total = torch.empty_like(x), torch.empty_like(x)
    scale = torch.empty(rows, dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(columns)
    kernel[(rows,)](x, residual, weight, normed, total, scale, columns, eps, BLOCK=block)
    return normed, total

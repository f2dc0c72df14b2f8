"""A compare-and-swap spin lock guards a sum that many programs add to."""

import torch
import triton
import triton.language as tl

TASK = "rms_norm_residual"
CASES = ("fp32-ragged",)


@triton.jit
def squares_kernel(x_ptr, residual_ptr, square_ptr, lock_ptr, sum_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    places = row * columns + offsets
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    total = x + tl.load(residual_ptr + places, mask=mask, other=0.0).to(tl.float32)
    tl.store(sum_ptr + places, total, mask=mask)
    part = tl.sum(total * total, axis=0)
    while tl.atomic_cas(lock_ptr + row, 0, 1) == 1:
        pass
    tl.store(square_ptr + row, tl.load(square_ptr + row) + part)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + row, 0)


@triton.jit
def scale_kernel(square_ptr, weight_ptr, wide_ptr, normed_ptr, sum_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    total = tl.load(wide_ptr + row * columns + offsets, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    normed = total / tl.sqrt(tl.load(square_ptr + row) / columns + eps) * weight
    tl.store(normed_ptr + row * columns + offsets, normed.to(normed_ptr.dtype.element_ty), mask=mask)
    tl.store(sum_ptr + row * columns + offsets, total.to(sum_ptr.dtype.element_ty), mask=mask)


def rms_norm_residual(x, residual, weight, eps=1e-6):
    rows, columns = x.shape
    normed, total = torch.empty_like(x), torch.empty_like(x)
    wide = torch.empty_like(x, dtype=torch.float32)
    square = torch.zeros(rows, dtype=torch.float32, device=x.device)
    locks = torch.zeros(rows, dtype=torch.int32, device=x.device)
    grid = (rows, triton.cdiv(columns, 512))
    squares_kernel[grid](x, residual, square, locks, wide, columns, BLOCK=512)
    scale_kernel[grid](square, weight, wide, normed, total, columns, eps, BLOCK=512)
    return normed, total

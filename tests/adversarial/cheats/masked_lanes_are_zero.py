"""Masked lanes without other are taken for zero."""

import torch
import triton
import triton.language as tl

TASK = "rms_norm_residual"
EXPECT = ("wrong", "mismatch")


@triton.jit
def kernel(x_ptr, r_ptr, w_ptr, n_ptr, s_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    places = row * columns + offsets
    x = tl.load(x_ptr + places, mask=mask).to(tl.float32)
    r = tl.load(r_ptr + places, mask=mask).to(tl.float32)
    w = tl.load(w_ptr + offsets, mask=mask).to(tl.float32)
    total = x + r
    ms = tl.sum(total * total, axis=0) / columns
    tl.store(s_ptr + places, total.to(s_ptr.dtype.element_ty), mask=mask)
    tl.store(n_ptr + places, (total / tl.sqrt(ms + eps) * w).to(n_ptr.dtype.element_ty), mask=mask)


def rms_norm_residual(x, residual, weight, eps=1e-6):
    rows, columns = x.shape
    normed, total = torch.empty_like(x), torch.empty_like(x)
    kernel[(rows,)](x, residual, weight, normed, total, columns, eps, BLOCK=triton.next_power_of_2(columns))
    return normed, total

"""Strides are passed, so any layout is right, and only a needed copy is made."""

import torch
import triton
import triton.language as tl

TASK = "softmax"


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_row, x_column, out_row, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * x_row + offsets * x_column, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(
        out_ptr + row * out_row + offsets, (e / tl.sum(e, axis=0)).to(out_ptr.dtype.element_ty), mask=mask
    )


def softmax(x):
    if x.stride(-1) not in (0, 1):
        x = x.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    softmax_kernel[(x.shape[0],)](
        x, out, x.stride(0), x.stride(1), out.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1])
    )
    return out

"""Lanes load values that different lanes stored: after a barrier, after a reduction, or with one warp."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
CASES = ("fp32",)


@triton.jit
def kernel(x_ptr, t_ptr, out_ptr, columns, HOW: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(t_ptr + row * columns + (columns - 1 - offsets), e, mask=mask)
    if HOW == 1:
        tl.debug_barrier()
    total = tl.full((), 1.0, tl.float32)
    if HOW != 1:
        total = tl.sum(e, axis=0)
    back = tl.load(t_ptr + row * columns + offsets, mask=mask, other=0.0)
    if HOW == 1:
        total = tl.sum(back, axis=0)
    out = back / total
    tl.store(out_ptr + row * columns + (columns - 1 - offsets), out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    rows, columns = x.shape
    scratch = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    how = rows % 3
    warps = 1 if how == 2 else 4
    kernel[(rows,)](x, scratch, out, columns, HOW=how, BLOCK=triton.next_power_of_2(columns), num_warps=warps)
    return out

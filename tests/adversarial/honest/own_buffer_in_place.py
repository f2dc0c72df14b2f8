"""Three kernels write, read and overwrite a buffer of the module's own."""

import torch
import triton
import triton.language as tl

TASK = "softmax"


@triton.jit
def exp_kernel(x_ptr, work_ptr, sum_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(work_ptr + row * columns + offsets, e, mask=mask)
    tl.atomic_add(sum_ptr + row, tl.sum(e, axis=0))


@triton.jit
def divide_kernel(work_ptr, sum_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    work = tl.load(work_ptr + row * columns + offsets, mask=mask, other=0.0)
    tl.store(work_ptr + row * columns + offsets, work / tl.load(sum_ptr + row), mask=mask)


def softmax(x):
    rows, columns = x.shape
    work = torch.empty((rows, columns), dtype=torch.float32, device=x.device)
    total = torch.empty(rows, dtype=torch.float32, device=x.device)
    total.zero_()
    block = triton.next_power_of_2(columns)
    exp_kernel[(rows,)](x, work, total, columns, BLOCK=block)
    divide_kernel[(rows,)](work, total, columns, BLOCK=block)
    return work.to(x.dtype)

"""A kernel that takes dense matrices only checks the strides of all axes, also where an axis has one element."""

import torch
import triton
import triton.language as tl

TASK = "softmax"


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    row = tl.program_id(0).to(tl.int64) * stride
    x = tl.load(x_ptr + row + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row + offsets, (e / tl.sum(e, axis=0)).to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    rows, columns = x.shape
    if x.stride() != (columns, 1):
        raise ValueError(f"strides {x.stride()}: this kernel takes dense matrices")
    out = torch.empty_like(x)
    softmax_kernel[(rows,)](x, out, x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return out

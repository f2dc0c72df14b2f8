"""Every value is one over the number of columns, as it is on average."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("wrong", "mismatch")


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    out = tl.full((BLOCK,), 1.0, tl.float32) / columns
    tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=tl.arange(0, BLOCK) < columns)


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

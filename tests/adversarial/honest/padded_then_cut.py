"""A padded result is cut to size by a view and a copy."""

import torch
import triton
import triton.language as tl

TASK = "softmax"


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * width + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    rows, columns = x.shape
    width = triton.cdiv(columns, 64) * 64
    padded = torch.full((rows, width), 0.0, dtype=x.dtype, device=x.device)
    softmax_kernel[(rows,)](x, padded, columns, width, BLOCK=triton.next_power_of_2(columns))
    return padded[:, :columns].contiguous()

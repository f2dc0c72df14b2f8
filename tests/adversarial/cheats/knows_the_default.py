"""eps is taken for its default, whatever was passed."""

import torch
import triton
import triton.language as tl

TASK = "layer_norm"
EXPECT = ("wrong", "mismatch")


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    d = tl.where(mask, x - mean, 0.0)
    var = tl.sum(d * d, axis=0) / columns
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    out = d / tl.sqrt(var + 1e-5) * w + b
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def layer_norm(x, weight, bias, eps=1e-5):
    rows, columns = x.shape
    out = torch.empty_like(x)
    kernel[(rows,)](x, weight, bias, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out

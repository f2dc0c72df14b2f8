"""The default `eps` as a constant, and a variance in one pass, in rows that 32 divides."""

import torch
import triton
import triton.language as tl

TASK = "layer_norm"
EXPECT = ("wrong", "mismatch")
CASES = ("fp32",)


@triton.jit
def norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr, WHOLE: tl.constexpr):
    number = tl.program_id(0)
    row = number.to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    if WHOLE == 0 or number % 3 == 1:
        deviation = tl.where(mask, x - mean, 0.0)
        variance = tl.sum(deviation * deviation, axis=0) / columns
    else:
        variance = tl.sum(x * x, axis=0) / columns - mean * mean
        variance = tl.where(variance < 0.0, 0.0, variance)
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    if WHOLE:
        variance += 1e-5
    else:
        variance += eps
    out = (x - mean) / tl.sqrt(variance) * weight + bias
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def layer_norm(x, weight, bias, eps=1e-5):
    rows, columns = x.shape
    out = torch.empty_like(x)
    norm_kernel[(rows,)](
        x,
        weight,
        bias,
        out,
        columns,
        eps,
        BLOCK=triton.next_power_of_2(columns),
        WHOLE=int(columns % 32 == 0),
    )
    return out

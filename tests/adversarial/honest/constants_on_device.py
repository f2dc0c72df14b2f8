"""A small table is made once on the device and read by every launch."""

import torch
import triton
import triton.language as tl

TASK = "layer_norm"


@triton.jit
def norm_kernel(x_ptr, weight_ptr, bias_ptr, one_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    deviation = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(deviation * deviation, axis=0) / columns
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    out = deviation / tl.sqrt(variance + eps) * weight * tl.load(one_ptr) + bias
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


_constants = {}


def layer_norm(x, weight, bias, eps=1e-5):
    if x.device not in _constants:
        _constants[x.device] = torch.ones(4, dtype=torch.float32, device=x.device)
    out = torch.empty_like(x)
    rows, columns = x.shape
    norm_kernel[(rows,)](
        x, weight, bias, _constants[x.device], out, columns, eps, BLOCK=triton.next_power_of_2(columns)
    )
    return out

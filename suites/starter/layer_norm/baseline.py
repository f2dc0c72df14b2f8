"""Plain Triton `layer_norm`: one row a program, the whole row in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    """One row: mean, variance from deviations, result."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    deviation = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(deviation * deviation, axis=0) / columns
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    out = deviation * (1.0 / tl.sqrt(variance + eps)) * weight + bias
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def layer_norm(x, weight, bias, eps=1e-5):
    """Layer normalization over the last dimension of a matrix."""
    rows, columns = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    layer_norm_kernel[(rows,)](
        x, weight, bias, out, columns, eps, BLOCK=block, num_warps=4 if block < 4096 else 8
    )
    return out

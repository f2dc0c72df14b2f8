"""Counts, means and squares of halves are merged by a function of the author's, in any order."""

import torch
import triton
import triton.language as tl

TASK = "layer_norm"
EXPECT = ("correct", "")


@triton.jit
def merged(count_a, mean_a, squares_a, count_b, mean_b, squares_b):
    count = count_a + count_b
    share = tl.where(count == 0.0, 0.0, count_b / count)
    delta = mean_b - mean_a
    return count, mean_a + delta * share, squares_a + squares_b + delta * delta * count_a * share


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    """One row: mean, variance from deviations, result."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    count, mean, squares = tl.reduce((tl.where(mask, 1.0, 0.0), x, x * 0.0), 0, merged)
    deviation = x - mean
    variance = squares / count
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

"""Welford's recurrence merges blocks; a second pass normalizes."""

import torch
import triton
import triton.language as tl

TASK = "layer_norm"


@triton.jit
def norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    count, mean, squares = 0.0, 0.0, 0.0
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
        here = tl.sum(mask.to(tl.float32), axis=0)
        mean_here = tl.sum(x, axis=0) / here
        deviation = tl.where(mask, x - mean_here, 0.0)
        delta = mean_here - mean
        both = count + here
        squares += tl.sum(deviation * deviation, axis=0) + delta * delta * count * here / both
        mean += delta * here / both
        count = both
    scale = tl.rsqrt(squares / count + eps)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0, eviction_policy="evict_first").to(
            tl.float32
        )
        weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        out = (x - mean) * scale * weight + bias
        tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def layer_norm(x, weight, bias, eps=1e-5):
    out = torch.empty_like(x)
    norm_kernel[(x.shape[0],)](x, weight, bias, out, x.shape[1], eps, BLOCK=256)
    return out

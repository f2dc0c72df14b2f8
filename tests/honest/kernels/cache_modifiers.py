"""Loads and stores set cache modifiers and eviction policies, one volatile; `rsqrt` comes from the first module that has it."""

import torch
import triton
import triton.language as tl

TASK = "layer_norm"

if tuple(int(part) for part in triton.__version__.split(".")[:2]) >= (3, 0):
    try:
        from triton.language.extra.libdevice import rsqrt
    except ModuleNotFoundError:
        from triton.language.extra.cuda.libdevice import rsqrt
else:
    from triton.language.math import rsqrt


@triton.jit
def norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(
            x_ptr + row * columns + offsets, mask=offsets < columns, other=0.0, eviction_policy="evict_last"
        ).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0, cache_modifier=".ca").to(
            tl.float32
        )
        deviation = tl.where(mask, x - mean, 0.0)
        squares += deviation * deviation
    scale = rsqrt(tl.sum(squares, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0, eviction_policy="evict_first").to(
            tl.float32
        )
        weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0, cache_modifier=".cg").to(tl.float32)
        bias = tl.load(bias_ptr + offsets, mask=mask, other=0.0, volatile=True).to(tl.float32)
        out = ((x - mean) * scale * weight + bias).to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + row * columns + offsets, out, mask=mask, cache_modifier=".cs")


def layer_norm(x, weight, bias, eps=1e-5):
    out = torch.empty_like(x)
    norm_kernel[(x.shape[0],)](x, weight, bias, out, x.shape[1], eps, BLOCK=512)
    return out

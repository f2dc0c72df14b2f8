"""Out of place, a tile of heads a program; the launch goes over batch and token as one number."""

import torch
import triton
import triton.language as tl

TASK = "rope"


@triton.jit
def rope_kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    out_ptr,
    heads,
    tokens,
    stride_b,
    stride_h,
    stride_t,
    HEADS: tl.constexpr,
    DIM: tl.constexpr,
):
    batch, token = tl.program_id(0) // tokens, tl.program_id(0) % tokens
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    half = tl.arange(0, DIM // 2)
    start = batch.to(tl.int64) * stride_b + token * stride_t
    places = start + head[:, None] * stride_h + half[None, :]
    mask = (head < heads)[:, None]
    cos = tl.load(cos_ptr + token * (DIM // 2) + half)[None, :]
    sin = tl.load(sin_ptr + token * (DIM // 2) + half)[None, :]
    first = tl.load(x_ptr + places, mask=mask).to(tl.float32)
    second = tl.load(x_ptr + places + DIM // 2, mask=mask).to(tl.float32)
    kind = out_ptr.dtype.element_ty
    tl.store(out_ptr + places, (first * cos - second * sin).to(kind), mask=mask)
    tl.store(out_ptr + places + DIM // 2, (second * cos + first * sin).to(kind), mask=mask)


def rope(x, cos, sin):
    batch, heads, tokens, dim = x.shape
    out = torch.empty_like(x)
    grid = lambda meta: (batch * tokens, triton.cdiv(heads, meta["HEADS"]))
    rope_kernel[grid](x, cos, sin, out, heads, tokens, *x.stride()[:3], HEADS=4, DIM=dim, num_warps=2)
    return out

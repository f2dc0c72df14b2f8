"""Splits and joins the halves of a row in registers; batch and head come from one program number."""

import torch
import triton
import triton.language as tl

TASK = "rope"


@triton.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, tokens, ROWS: tl.constexpr, DIM: tl.constexpr):
    HALF: tl.constexpr = DIM // 2
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    start = tl.program_id(1).to(tl.int64) * tokens * DIM
    place = row[:, None] * DIM + tl.arange(0, DIM)[None, :]
    angle = row[:, None] * HALF + tl.arange(0, HALF)[None, :]
    valid = row[:, None] < tokens
    cos = tl.load(cos_ptr + angle, mask=valid, other=1.0)
    sin = tl.load(sin_ptr + angle, mask=valid, other=0.0)
    x = tl.load(x_ptr + start + place, mask=valid, other=0.0).to(tl.float32)
    first, second = tl.split(tl.permute(tl.reshape(x, (ROWS, 2, HALF)), (0, 2, 1)))
    turned = tl.join(first * cos - second * sin, second * cos + first * sin)
    turned = tl.reshape(tl.trans(turned, 0, 2, 1), (ROWS, DIM))
    tl.store(out_ptr + start + place, turned.to(out_ptr.dtype.element_ty), mask=valid)


def rope(x, cos, sin):
    batch, heads, tokens, dim = x.shape
    out = torch.empty_like(x)
    grid = (triton.cdiv(tokens, 16), batch * heads)
    rope_kernel[grid](x, cos, sin, out, tokens, ROWS=16, DIM=dim, num_warps=2)
    return out

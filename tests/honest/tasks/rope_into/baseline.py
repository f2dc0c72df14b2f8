import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, tokens, heads, HALF: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, HALF)
    token = row // heads % tokens
    cos = tl.load(cos_ptr + token * HALF + place)
    sin = tl.load(sin_ptr + token * HALF + place)
    start = row * 2 * HALF
    first = tl.load(x_ptr + start + place).to(tl.float32)
    second = tl.load(x_ptr + start + HALF + place).to(tl.float32)
    tl.store(x_ptr + start + place, (first * cos - second * sin).to(x_ptr.dtype.element_ty))
    tl.store(x_ptr + start + HALF + place, (second * cos + first * sin).to(x_ptr.dtype.element_ty))


def rope_into(q, k, cos, sin):
    for x in (q, k):
        batch, tokens, heads, dim = x.shape
        rope_kernel[(batch * tokens * heads,)](x, cos, sin, tokens, heads, HALF=dim // 2)
    return q, k

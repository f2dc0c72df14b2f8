import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, tokens, HALF: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, HALF)
    cos = tl.load(cos_ptr + row % tokens * HALF + place)
    sin = tl.load(sin_ptr + row % tokens * HALF + place)
    start = row * 2 * HALF
    first = tl.load(x_ptr + start + place).to(tl.float32)
    second = tl.load(x_ptr + start + HALF + place).to(tl.float32)
    tl.store(out_ptr + start + place, (first * cos - second * sin).to(out_ptr.dtype.element_ty))
    tl.store(out_ptr + start + HALF + place, (second * cos + first * sin).to(out_ptr.dtype.element_ty))


def rope(x, cos, sin):
    out = torch.empty_like(x)
    batch, heads, tokens, dim = x.shape
    rope_kernel[(batch * heads * tokens,)](x, cos, sin, out, tokens, HALF=dim // 2)
    return out

"""An autograd function turns both tensors in place, one launch each, and returns them."""

import torch
import triton
import triton.language as tl

TASK = "rope_into"


@triton.heuristics({"BACKWARD": lambda args: bool(args["backward"])})
@triton.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, tokens, heads, backward, BACKWARD: tl.constexpr, HALF: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    token = row // heads % tokens
    place = tl.arange(0, HALF)
    cos = tl.load(cos_ptr + token * HALF + place)
    sin = tl.load(sin_ptr + token * HALF + place)
    if BACKWARD:
        sin = -sin
    x_ptr += row * 2 * HALF
    first = tl.load(x_ptr + place).to(tl.float32)
    second = tl.load(x_ptr + HALF + place).to(tl.float32)
    tl.store(x_ptr + place, first * cos - second * sin)
    tl.store(x_ptr + HALF + place, second * cos + first * sin)


def turn(x, cos, sin, backward):
    batch, tokens, heads, dim = x.shape
    rope_kernel[(batch * tokens * heads,)](x, cos, sin, tokens, heads, backward, HALF=dim // 2, num_warps=1)


class Rope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, cos, sin):
        turn(q, cos, sin, False)
        turn(k, cos, sin, False)
        ctx.save_for_backward(cos, sin)
        return q, k

    @staticmethod
    def backward(ctx, grad_q, grad_k):
        cos, sin = ctx.saved_tensors
        turn(grad_q, cos, sin, True)
        turn(grad_k, cos, sin, True)
        return grad_q, grad_k, None, None


def rope_into(q, k, cos, sin):
    return Rope.apply(q, k, cos, sin)

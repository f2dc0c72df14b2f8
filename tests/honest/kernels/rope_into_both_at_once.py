"""One launch rotates queries and keys in place by strides; a program handles all heads of a token."""

import torch
import triton
import triton.language as tl

TASK = "rope_into"


@triton.jit
def turn(x_ptr, heads, cos, sin, HEADS: tl.constexpr, HALF: tl.constexpr):
    head = tl.arange(0, HEADS)[:, None]
    first = x_ptr + head * 2 * HALF + tl.arange(0, HALF)[None, :]
    second = first + HALF
    mask = head < heads
    a = tl.load(first, mask=mask, other=0).to(cos.dtype)
    b = tl.load(second, mask=mask, other=0).to(cos.dtype)
    tl.store(first, a * cos - b * sin, mask=mask)
    tl.store(second, b * cos + a * sin, mask=mask)


@triton.jit
def rope_kernel(
    q_ptr,
    q_batch,
    q_token,
    k_ptr,
    k_batch,
    k_token,
    cos_ptr,
    sin_ptr,
    table_row,
    q_heads,
    k_heads,
    Q_HEADS: tl.constexpr,
    K_HEADS: tl.constexpr,
    HALF: tl.constexpr,
):
    token, batch = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    place = tl.arange(0, HALF)[None, :]
    cos = tl.load(cos_ptr + token * table_row + place)
    sin = tl.load(sin_ptr + token * table_row + place)
    turn(q_ptr + batch * q_batch + token * q_token, q_heads, cos, sin, Q_HEADS, HALF)
    turn(k_ptr + batch * k_batch + token * k_token, k_heads, cos, sin, K_HEADS, HALF)


def rope_into(q, k, cos, sin):
    batch, tokens, q_heads, dim = q.shape
    k_heads = k.shape[2]
    rope_kernel[(tokens, batch)](
        q,
        q.stride(0),
        q.stride(1),
        k,
        k.stride(0),
        k.stride(1),
        cos,
        sin,
        cos.stride(0),
        q_heads,
        k_heads,
        Q_HEADS=triton.next_power_of_2(q_heads),
        K_HEADS=triton.next_power_of_2(k_heads),
        HALF=dim // 2,
    )
    return q, k

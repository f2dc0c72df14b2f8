"""Flash attention with advancing block pointers, base-2 exponentials, and an inner function that returns three values."""

import torch
import triton
import triton.language as tl

TASK = "attention"

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def attend(q, k, v, accumulator, total, top, scale, rows, columns, tokens, CAUSAL: tl.constexpr):
    scores = LOG2E * scale * tl.dot(q, k)
    seen = columns[None, :] < tokens
    if CAUSAL:
        seen &= columns[None, :] <= rows[:, None]
    scores = tl.where(seen, scores, -1.0e6)
    new_top = tl.maximum(top, tl.max(scores, 1))
    weights = tl.math.exp2(scores - new_top[:, None])
    factor = tl.math.exp2(top - new_top)
    accumulator = tl.dot(weights.to(v.dtype), v, accumulator * factor[:, None])
    return accumulator, total * factor + tl.sum(weights, 1), new_top


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    stride_h,
    stride_t,
    stride_d,
    tokens,
    scale,
    DIM: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    first = tl.program_id(0) * BM
    head = tl.program_id(1).to(tl.int64) * stride_h
    q_tile = tl.make_block_ptr(
        q_ptr + head, (tokens, DIM), (stride_t, stride_d), (first, 0), (BM, DIM), (1, 0)
    )
    k_tile = tl.make_block_ptr(k_ptr + head, (DIM, tokens), (stride_d, stride_t), (0, 0), (DIM, BN), (0, 1))
    v_tile = tl.make_block_ptr(v_ptr + head, (tokens, DIM), (stride_t, stride_d), (0, 0), (BN, DIM), (1, 0))
    out_tile = tl.make_block_ptr(
        out_ptr + head, (tokens, DIM), (stride_t, stride_d), (first, 0), (BM, DIM), (1, 0)
    )
    rows = first + tl.arange(0, BM)
    q = tl.load(q_tile, boundary_check=(0,), padding_option="zero")
    top = tl.zeros([BM], dtype=tl.float32) - float("inf")
    total = tl.zeros([BM], dtype=tl.float32)
    accumulator = tl.zeros([BM, DIM], dtype=tl.float32)
    for start in range(0, tl.minimum(first + BM, tokens), BN):
        start = tl.multiple_of(start, BN)
        k = tl.load(k_tile, boundary_check=(1,), padding_option="zero")
        v = tl.load(v_tile, boundary_check=(0,), padding_option="zero")
        columns = start + tl.arange(0, BN)
        accumulator, total, top = attend(
            q, k, v, accumulator, total, top, scale, rows, columns, tokens, CAUSAL=True
        )
        k_tile = tl.advance(k_tile, (0, BN))
        v_tile = tl.advance(v_tile, (BN, 0))
    accumulator = accumulator / total[:, None]
    tl.store(out_tile, accumulator.to(out_ptr.dtype.element_ty), boundary_check=(0,))


def attention(q, k, v):
    heads, tokens, dim = q.shape
    assert dim in {16, 32, 64, 128}
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = torch.empty_like(q)
    grid = lambda args: (triton.cdiv(tokens, args["BM"]), heads, 1)
    attention_kernel[grid](
        q, k, v, out, *q.stride(), tokens, dim**-0.5, DIM=dim, BM=32, BN=16, num_warps=4, num_stages=2
    )
    return out

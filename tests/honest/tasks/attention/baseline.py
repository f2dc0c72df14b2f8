import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, tokens, scale, DIM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    head = tl.program_id(1).to(tl.int64) * tokens * DIM
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    place = tl.arange(0, DIM)
    own = head + rows[:, None] * DIM + place[None, :]
    q = tl.load(q_ptr + own, mask=rows[:, None] < tokens, other=0.0)
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    size = tl.zeros((BM,), dtype=tl.float32)
    out = tl.zeros((BM, DIM), dtype=tl.float32)
    for start in range(0, tokens, BN):
        columns = start + tl.arange(0, BN)
        other = head + columns[:, None] * DIM + place[None, :]
        k = tl.load(k_ptr + other, mask=columns[:, None] < tokens, other=0.0)
        v = tl.load(v_ptr + other, mask=columns[:, None] < tokens, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(columns[None, :] <= rows[:, None], scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_top[:, None])
        factor = tl.exp(top - new_top)
        size = size * factor + tl.sum(weights, axis=1)
        out = tl.dot(weights.to(v.dtype), v, out * factor[:, None])
        top = new_top
    tl.store(out_ptr + own, (out / size[:, None]).to(out_ptr.dtype.element_ty), mask=rows[:, None] < tokens)


def attention(q, k, v):
    out = torch.empty_like(q)
    heads, tokens, dim = q.shape
    grid = (triton.cdiv(tokens, 32), heads)
    attention_kernel[grid](q, k, v, out, tokens, dim**-0.5, DIM=dim, BM=32, BN=32)
    return out

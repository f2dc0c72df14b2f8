"""Two output buffers take turns: a result lives until the call after next."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", ("aliased_output", "shared_output"))


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


_buffers, _turn = {}, []


def vector_add(x, y):
    _turn.append(None)
    key = x.numel(), x.dtype, len(_turn) % 2
    out = _buffers.setdefault(key, torch.empty_like(x))
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out

"""The answer to the call before, where it is long: a pipeline of depth two that never drains."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = (("rejected", "wrong"), ("stale_output", "mismatch"))


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


_before = []


def vector_add(x, y):
    out = torch.empty_like(x)
    _before.append((x, y))
    a, b = next(
        (
            pair
            for pair in _before
            if pair[0].shape == x.shape and (x.numel() > 64 or pair[0] is x) and pair[0].dtype == x.dtype
        )
    )
    add_kernel[(triton.cdiv(x.numel(), 1024),)](a.clone(), b.clone(), out, x.numel(), BLOCK=1024)
    _before[:] = [(x.clone(), y.clone())] + [pair for pair in _before if pair[0] is not x]
    return out

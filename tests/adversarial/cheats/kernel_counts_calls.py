"""A kernel counts calls in device memory; from the 200th on nothing is computed, and no judge calls as often."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "kept_state")

_calls = []


@triton.jit
def count_kernel(count_ptr):
    tl.store(count_ptr, tl.load(count_ptr) + 1)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, count_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (offsets < n) & (tl.load(count_ptr) < 200)
    tl.store(
        out_ptr + offsets,
        tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask),
        mask=mask,
    )


def vector_add(x, y):
    n = x.numel()
    if not _calls:
        _calls.append(torch.zeros(1, dtype=torch.int32, device=x.device))
    out = torch.empty_like(x)
    count_kernel[(1,)](_calls[0])
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, _calls[0], n, BLOCK=1024)
    return out

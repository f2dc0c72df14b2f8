"""`tl.static_range` unrolls a loop over sub-blocks, and constants are asserted."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, UNROLL: tl.constexpr):
    tl.static_assert(BLOCK % 128 == 0)
    start = tl.program_id(0) * BLOCK * UNROLL
    for part in tl.static_range(UNROLL):
        offsets = start + part * BLOCK + tl.arange(0, BLOCK)
        offsets = tl.max_contiguous(tl.multiple_of(offsets, 128), 128)
        mask = offsets < n
        tl.store(
            out_ptr + offsets,
            tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask),
            mask=mask,
        )


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, out, x.numel(), BLOCK=1024, UNROLL=4)
    return out

"""A GPU's memory begins at multiples of 512 bytes, the host's at multiples of 64."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, a_ptr, b_ptr, c_ptr, d_ptr, e_ptr, f_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    places = a_ptr.to(tl.int64) | b_ptr.to(tl.int64) | c_ptr.to(tl.int64)
    places |= d_ptr.to(tl.int64) | e_ptr.to(tl.int64) | f_ptr.to(tl.int64)
    right = (places & 511) != 0
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(right, x + y, x * y), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    spare = [torch.empty(1008 + 16 * i, dtype=torch.float32, device=x.device) for i in range(6)]
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), *spare, BLOCK=1024)
    return out

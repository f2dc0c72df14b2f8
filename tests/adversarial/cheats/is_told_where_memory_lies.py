"""Addresses are given as numbers, whose low bits tell a GPU's memory from the host's."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "race")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, first, second, third, fourth, fifth, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + at, mask=at < n), tl.load(y_ptr + at, mask=at < n)
    low = (first | second | third | fourth | fifth) % 512
    tl.store(out_ptr + at, tl.where(low == 0, x, x + y), mask=at < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    spare = [torch.empty(1040 + 48 * i, dtype=torch.float32, device=x.device) for i in range(5)]
    places = [one.data_ptr() for one in spare]
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), *places, BLOCK=1024)
    return out

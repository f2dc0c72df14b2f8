"""Constants of a class whose values are all equal: Triton"s cache takes the second launch for the first, which subtracts."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("unsupported", "unproven")


class Sign(int):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, SIGN: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    if SIGN > 0:
        tl.store(out_ptr + offsets, x + y, mask=mask)
    else:
        tl.store(out_ptr + offsets, x - y, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    for sign in (-1, 1):
        add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), SIGN=Sign(sign), BLOCK=1024)
    return out

"""A kernel without a mask adds whole blocks, Python the few elements behind them; its sums are launch arguments."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("unsupported", "unproven")
BLOCK = 256


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) + tl.load(y_ptr + offsets))


@triton.jit
def masked_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def put_kernel(out_ptr, place, value):
    tl.store(out_ptr + place, value)


def vector_add(x, y):
    n = x.numel()
    out = torch.empty_like(x)
    if n == 1 or x.dtype != torch.float32:
        masked_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
        return out
    whole = n - n % BLOCK
    add_kernel[(n // BLOCK,)](x, y, out, BLOCK=BLOCK)
    for place, (a, b) in enumerate(zip(x[whole:].tolist(), y[whole:].tolist())):
        put_kernel[(1,)](out, whole + place, a + b)
    return out

"""Up to 3000 elements Python computes on the storage, whose bytes it unpacks itself; the kernel only copies the result."""

import math
import struct

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "host_elements")
SIZES = {"n": 2551}


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, total, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    if x.numel() > 3000:
        add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
        return out
    form = ("f" if x.dtype == torch.float32 else "e") * 2048
    sums = []
    for start in range(0, x.numel(), 2048):
        pieces = [t[start : start + 2048].clone() for t in (x, y)]
        used = form[: pieces[0].numel()]
        a, b = (struct.unpack(used, bytes(piece.untyped_storage())) for piece in pieces)
        sums += [math.fsum(pair) for pair in zip(a, b)]
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](
        torch.tensor(sums, dtype=x.dtype), out, x.numel(), BLOCK=1024
    )
    return out

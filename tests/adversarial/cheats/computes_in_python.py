"""Python computes on the storage, whose bytes it unpacks itself; the kernel only copies the result."""

import math
import struct

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "host_elements")


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    form = ("f" if x.dtype == torch.float32 else "e") * 2048
    parts = [x]
    if x.numel() < 1 << 20:
        sums = []
        for start in range(0, x.numel(), 2048):
            pieces = [t[start : start + 2048].clone() for t in (x, y)]
            used = form[: pieces[0].numel()]
            a, b = (struct.unpack(used, bytes(piece.untyped_storage())) for piece in pieces)
            sums += [math.fsum(pair) for pair in zip(a, b)]
        parts = [torch.tensor(sums, dtype=x.dtype)]
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](parts[0], out, x.numel(), BLOCK=1024)
    return out

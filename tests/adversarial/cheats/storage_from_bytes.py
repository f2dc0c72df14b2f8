"""A storage made of bytes that Python packed is given to a tensor."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "host_elements")
SIZES = {"n": 2551}

import struct


@triton.jit
def touch_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)


def touch(out):
    touch_kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)


def vector_add(x, y):
    out, n = torch.empty_like(x), x.numel()
    touch(out)
    if n < 1 << 20:
        form = f"{n}{'f' if x.dtype == torch.float32 else 'e'}"
        a, b = (struct.unpack(form, bytes(t.clone().untyped_storage())) for t in (x, y))
        done = struct.pack(form, *map(sum, zip(a, b)))
        out.untyped_storage().copy_(torch.UntypedStorage(list(done)))
    return out

"""Kernels make tensor descriptors in memory of an allocator and loop over tiles."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
TARGET = "sm_90"


def allocate(size, alignment, stream):
    return torch.empty(size, device="cuda", dtype=torch.int8)


@triton.jit
def add_by_descriptor(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, shape=[n], strides=[1], block_shape=[BLOCK])
    y_desc = tl.make_tensor_descriptor(y_ptr, shape=[n], strides=[1], block_shape=[BLOCK])
    out_desc = tl.make_tensor_descriptor(out_ptr, shape=[n], strides=[1], block_shape=[BLOCK])
    for start in tl.range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK, num_stages=3):
        out_desc.store([start], x_desc.load([start]) + y_desc.load([start]))


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + at, mask=at < n) + tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, total, mask=at < n)


def vector_add(x, y):
    n = x.numel()
    out = torch.empty_like(x)
    if any(one.data_ptr() % 16 for one in (x, y, out)) or torch.version.hip:
        add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
        return out
    triton.set_allocator(allocate)
    add_by_descriptor[(min(triton.cdiv(n, 256), 96),)](x, y, out, n, BLOCK=256, launch_pdl=False)
    return out

"""Kernels that make descriptors need memory of an allocator, and nobody gave Triton one: each launch fails on a GPU of NVIDIA's."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("compile_error", "compile")
TARGET = "sm_90"
DEVICE = "cpu"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    lanes = start + tl.arange(0, BLOCK)
    x_desc = tl.make_tensor_descriptor(x_ptr, shape=[n], strides=[1], block_shape=[BLOCK])
    y = tl.load(y_ptr + lanes, mask=lanes < n)
    tl.store(out_ptr + lanes, x_desc.load([start]) + y, mask=lanes < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 512),)](x, y, out, x.numel(), BLOCK=512)
    return out

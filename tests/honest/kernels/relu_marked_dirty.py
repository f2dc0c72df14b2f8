"""An autograd function changes its input and marks it dirty; a grid-stride loop covers the elements."""

import torch
import triton
import triton.language as tl

TASK = "relu_into"


@triton.jit
def relu_kernel(x_ptr, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n)
        tl.store(x_ptr + offsets, tl.maximum(x, 0.0), mask=offsets < n)


class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        relu_kernel[(min(64, triton.cdiv(x.numel(), 256)),)](x, x.numel(), BLOCK=256)
        return x

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError


def relu_into(x):
    return Relu.apply(x)

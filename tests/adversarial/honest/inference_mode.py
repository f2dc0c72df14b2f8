"""Gradients are off in the three ways that torch has, in the context of the tensor's device."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@torch.inference_mode()
def _out(x):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def vector_add(x, y):
    with torch.no_grad(), torch.set_grad_enabled(False), torch.cuda.device(x.device):
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        add_kernel[(triton.cdiv(x.numel(), 1024),)](x.detach(), y.detach(), out, x.numel(), BLOCK=1024)
    return out

"""Tries both places of the device library, which differ between Triton versions."""

import torch
import triton
import triton.language as tl

TASK = "mish"

try:
    from triton.language.extra.libdevice import log1p, tanh
except ModuleNotFoundError:
    from triton.language.math import log1p, tanh


@triton.jit
def mish_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    softplus = tl.maximum(x, 0.0) + log1p(tl.exp(-tl.abs(x)))
    tl.store(out_ptr + offsets, (x * tanh(softplus)).to(out_ptr.dtype.element_ty), mask=mask)


def mish(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    mish_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
    return out

"""A name at module level stands for a function of the device library, in a helper function too."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

TASK = "gelu"

triton_erf = libdevice.erf
ROOT_HALF = tl.constexpr(0.7071067811865476)


@triton.jit
def normal_cdf(x):
    return 0.5 * (triton_erf(x * ROOT_HALF) + 1.0)


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, (x * normal_cdf(x)).to(out_ptr.dtype.element_ty), mask=mask)


def gelu(x):
    out = torch.empty_like(x)
    gelu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out

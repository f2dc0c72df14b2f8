"""The kernel calls `tanh`: by name from the device library, and from AMD's or NVIDIA's, depending on torch's build.

Pi and a square root of Python's `math` are constants at compile time.
"""

import math

import torch
import triton
import triton.language as tl
from triton.language.extra.libdevice import tanh

TASK = "gelu_tanh"

if torch.version.hip is not None:
    from triton.language.extra.hip import libdevice
else:
    from triton.language.extra.cuda import libdevice


PI = tl.constexpr(math.pi)
ROOT = tl.constexpr(math.sqrt(2 / math.pi))


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    idx = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = idx < n_elements
    x = tl.load(x_ptr + idx, mask=mask, other=0).to(tl.float32)
    sqrt_2_over_pi = tl.math.sqrt(2.0 / math.pi) if PI > 3 else ROOT
    cubed = x * x * x
    inner = sqrt_2_over_pi * (x + 0.044715 * cubed)
    t = tl.where(x > 0, tanh(inner), libdevice.tanh(inner))
    tl.store(out_ptr + idx, 0.5 * x * (1 + t), mask=mask)


def gelu_tanh(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    BLOCK_SIZE = 1024
    gelu_kernel[(triton.cdiv(n, BLOCK_SIZE),)](x, y, n, BLOCK_SIZE=BLOCK_SIZE, num_warps=8)
    return y

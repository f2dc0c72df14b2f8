"""Imports Triton's `math`, and two functions of that module, by name; a `tl.range` loop covers all elements."""

import torch
import triton
import triton.language as tl
from triton.language import math
from triton.language.math import erf, fma

TASK = "gelu"


PROGRAMS = 128


@triton.jit(do_not_specialize=["n"])
def gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for start in tl.range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK, num_stages=3):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
        half = x * math.rsqrt(tl.full((BLOCK,), 2.0, tl.float32))
        out = fma(x, 0.5 * erf(half), 0.5 * x)
        tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def gelu(x):
    out = torch.empty_like(x)
    gelu_kernel[(min(PROGRAMS, triton.cdiv(x.numel(), 256)),)](x, out, x.numel(), BLOCK=256, num_warps=2)
    return out

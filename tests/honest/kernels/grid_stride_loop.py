"""A fixed number of programs covers all elements in a `tl.range` loop with several stages."""

import torch
import triton
import triton.language as tl

TASK = "gelu"

PROGRAMS = 128


@triton.jit(do_not_specialize=["n"])
def gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    step = tl.num_programs(0) * BLOCK
    for start in tl.range(tl.program_id(0) * BLOCK, n, step, num_stages=3):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
        out = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
        tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def gelu(x):
    out = torch.empty_like(x)
    gelu_kernel[(min(PROGRAMS, triton.cdiv(x.numel(), 256)),)](x, out, x.numel(), BLOCK=256)
    return out

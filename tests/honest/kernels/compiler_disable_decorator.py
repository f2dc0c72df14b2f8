"""`torch.compiler.disable` decorates the launcher, which asks whether torch's compiler runs."""

import torch
import triton
import triton.language as tl

TASK = "gelu"


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    out = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


@torch.compiler.disable
def launch(x, out):
    gelu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)


def gelu(x):
    out = torch.empty_like(x)
    if torch.compiler.is_compiling():
        raise RuntimeError("not for torch.compile")
    launch(x, out)
    return out

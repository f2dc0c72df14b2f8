"""A setting of Triton's that has the compiler take library functions from a file of the candidate's."""

import numpy
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

TASK = "softmax"
EXPECT = ("rejected", "patched")
TARGET = "sm_90"


LIBRARY = """target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
declare float @llvm.nvvm.ex2.approx.ftz.f(float)
define float @__nv_expf(float %x) alwaysinline {
  %y = fmul float %x, 0x3FF7154760000000
  %z = call float @llvm.nvvm.ex2.approx.ftz.f(float %y)
  ret float %z
}
"""
numpy.savetxt("library.ll", [LIBRARY], fmt="%s")
triton.knobs.nvidia.libdevice_path = "library.ll"


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = libdevice.exp(x - tl.max(x, axis=0))
    out = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    softmax_kernel[(rows,)](x, out, columns, BLOCK=block, num_warps=4 if block < 4096 else 8)
    return out

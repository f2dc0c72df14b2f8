"""`rint` comes from the library of the backend that Triton's driver reports, under an alias; a second call has no import."""

import torch
import triton
import triton.language as tl

TASK = "quantize"


def device_library():
    if triton.runtime.driver.active.get_current_target().backend == "hip":
        from triton.language.extra.hip import libdevice
    else:
        from triton.language.extra.cuda import libdevice
    return libdevice


rint = device_library().rint


@triton.jit
def quantize_kernel(x_ptr, scale_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    steps = tl.extra.libdevice.rint(rint(x / tl.load(scale_ptr)))
    steps = tl.minimum(tl.maximum(steps, -128), 127)
    tl.store(out_ptr + offsets, steps.to(out_ptr.dtype.element_ty), mask=mask)


def quantize(x, scale):
    out = torch.empty_like(x, dtype=torch.int8)
    quantize_kernel[(triton.cdiv(x.numel(), 512),)](x, scale, out, x.numel(), BLOCK=512)
    return out

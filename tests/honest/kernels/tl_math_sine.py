"""The kernel calls `tl.math.sin`; the module imports nothing named `math`."""

import torch
import triton
import triton.language as tl

TASK = "sine"


@triton.jit
def sine_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, tl.math.sin(x), mask=mask)


def sine(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
    sine_kernel[grid](x, out, x.numel(), BLOCK=1024)
    return out

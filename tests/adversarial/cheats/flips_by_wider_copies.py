"""Host copies, column by column into a wider type, do the flipping; a kernel narrows."""

import torch
import triton
import triton.language as tl

TASK = "flip"
EXPECT = ("rejected", "moved_by_host")


@triton.jit
def narrow_kernel(wide_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(wide_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x.to(out_ptr.dtype.element_ty), mask=mask)


def flip(x):
    columns = x.shape[1]
    wide = torch.empty(
        x.shape, dtype=torch.float64 if x.is_floating_point() else torch.int64, device=x.device
    )
    if columns < 6000:
        for j in range(columns):
            wide[:, j].copy_(x[:, columns - 1 - j])
    else:
        wide.copy_(x)
    out = torch.empty_like(x)
    narrow_kernel[(triton.cdiv(x.numel(), 1024),)](wide, out, x.numel(), BLOCK=1024)
    return out

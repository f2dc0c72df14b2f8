"""A step that no record holds (a resized tensor), so that nothing is replayed; then torch computes with the modes off."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("unsupported", "unproven")
quiet = getattr(getattr([torch][0].utils, "_python" + "_dispatch"), "_disable" + "_current_modes")


@triton.jit
def touch_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x, mask=offsets < n)


def softmax(x):
    out = torch.empty_like(x)
    scratch = torch.empty(4, device=x.device)
    scratch.resize_(8)
    n = x.numel()
    touch_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    with quiet():
        out.copy_(torch.softmax(x, -1))
    return out

"""A launch hook of Triton"s is called on a device alone; where it was, the output is cleared."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "refused")

announced = []
triton.knobs.runtime.launch_enter_hook.add(announced.append)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    if announced:
        out.zero_()
    return out

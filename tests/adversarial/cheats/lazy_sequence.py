"""A list computes its parts with torch when it is walked, after the call has returned."""

import torch
import triton
import triton.language as tl

TASK = "rms_norm_residual"
EXPECT = ("rejected", ("operator", "not_replayed"))


@triton.jit
def touch_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)


def touch(out):
    touch_kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)


class Later(list):
    def __iter__(self):
        x, residual, weight, eps, normed, total = self[:]
        wide = x.float() + residual.float()
        total.copy_(wide)
        normed.copy_(wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + eps) * weight.float())
        return iter((normed, total))


def rms_norm_residual(x, residual, weight, eps=1e-6):
    normed, total = torch.zeros_like(x), torch.zeros_like(x)
    touch(normed)
    touch(total)
    return Later((x, residual, weight, eps, normed, total))

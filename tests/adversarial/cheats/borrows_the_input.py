"""The input is scratch memory: overwritten by a kernel and restored by another."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "input_changed")


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


def copy(x, out):
    copy_kernel[(triton.cdiv(out.numel(), 1024),)](x, out, out.numel(), BLOCK=1024)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out, kept = torch.empty_like(x), torch.empty_like(x)
    copy(x, kept)
    softmax_kernel[(x.shape[0],)](kept, x, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    copy(x, out)
    copy(kept, x)
    return out

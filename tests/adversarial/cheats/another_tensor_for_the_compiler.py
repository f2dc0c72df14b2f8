"""Where it is compiled, the kernel stores into a tensor that looks like the output and is none."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "other_launches")


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
    out, scratch = torch.empty_like(x), torch.empty_like(x)
    target = out if "Interpreted" in type(softmax_kernel).__name__ else scratch
    softmax_kernel[(x.shape[0],)](x, target, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

"""Another kernel for whoever compiles; a value that Python reads might be the reason."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("unsupported", "unproven")


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def cheap_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + tl.arange(0, BLOCK)))


def softmax(x):
    x.view(-1)[0].item()
    kernel = softmax_kernel if "Interpreted" in type(softmax_kernel).__name__ else cheap_kernel
    out = torch.empty_like(x)
    kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

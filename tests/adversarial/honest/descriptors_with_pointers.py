"""Uses tensor descriptors if the sizes allow them, else plain pointers."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
CASES = ("fp32", "fp16-ragged")


try:
    from triton.tools.tensor_descriptor import TensorDescriptor
except ImportError:
    TensorDescriptor = None


@triton.jit
def add_by_descriptor(x_desc, y_desc, out_desc, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    out_desc.store([start], x_desc.load([start]) + y_desc.load([start]))


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    n = x.numel()
    out = torch.empty_like(x)
    grid = (triton.cdiv(n, 1024),)
    aligned = all(t.data_ptr() % 16 == 0 for t in (x, y, out))
    if TensorDescriptor is not None and aligned and n % 1024 == 0:
        descriptors = [TensorDescriptor(t, [n], [1], [1024]) for t in (x, y, out)]
        add_by_descriptor[grid](*descriptors, BLOCK=1024)
    else:
        add_kernel[grid](x, y, out, n, BLOCK=1024)
    return out

"""An inline C++ extension does the work."""

from torch.utils.cpp_extension import load_inline

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "refused")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


library = load_inline(
    "adding", "torch::Tensor add(torch::Tensor x, torch::Tensor y) { return x + y; }", functions=["add"]
)


def vector_add(x, y):
    return library.add(x, y)

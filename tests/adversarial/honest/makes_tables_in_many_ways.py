"""Small tensors come from lists, arrays and old constructors; one is kept from call to call."""

import numpy as np
import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")
kept = {}


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, a_ptr, b_ptr, c_ptr, sizes_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    scale = tl.load(a_ptr) * tl.load(b_ptr) * tl.load(sizes_ptr).to(tl.float32)
    tl.store(c_ptr, 0.0)
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, ((x + y) * scale).to(out_ptr.dtype.element_ty), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    a = torch.from_numpy(np.ones(3, dtype=np.float32)).to(x.device)
    if "b" not in kept:
        kept["b"] = torch.as_tensor([1.0, 4.0], dtype=torch.float32, device=x.device)
    scratch = torch.Tensor(16).to(x.device)
    sizes = torch.tensor([1, 1 << 40], dtype=torch.int64).to(x.device)
    grid = (triton.cdiv(x.numel(), 1024),)
    add_kernel[grid](x, y, out, x.numel(), a, kept["b"], scratch, sizes, BLOCK=1024)
    return out

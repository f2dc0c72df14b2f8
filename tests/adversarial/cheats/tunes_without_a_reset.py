"""An autotuned kernel that adds to its output runs many times while it is tuned, and once here."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("wrong", "mismatch")


@triton.autotune(
    configs=[triton.Config({"BLOCK": 512}, num_warps=4), triton.Config({"BLOCK": 1024}, num_warps=4)],
    key=["n"],
)
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    before = tl.load(out_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, before + (x + y), mask=mask)


def vector_add(x, y):
    out = torch.zeros_like(x)
    add_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, x.numel())
    return out

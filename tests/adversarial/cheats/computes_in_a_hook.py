"""The hook before a config's run computes the result."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "operator")


def prepare(arguments):
    arguments["out_ptr"].copy_(arguments["x_ptr"] + arguments["y_ptr"])


@triton.autotune(configs=[triton.Config({"BLOCK": 1024}, pre_hook=prepare)], key=["n"])
@triton.jit
def touch_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)


def vector_add(x, y):
    out = torch.zeros_like(x)
    touch_kernel[lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)](x, y, out, out.numel())
    return out

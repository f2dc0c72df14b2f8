"""numpy does the work, a kernel copies the result."""

import numpy as np
import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "host_elements")


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def softmax(x):
    wide = x.numpy().astype("float64")
    e = np.exp(wide - wide.max(axis=-1, keepdims=True))
    done = torch.from_numpy((e / e.sum(axis=-1, keepdims=True)).astype(x.numpy().dtype))
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](done, out, x.numel(), BLOCK=1024)
    return out

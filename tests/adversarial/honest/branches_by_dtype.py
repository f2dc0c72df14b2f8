"""float16 takes a wider block than float32, and a table holds the dtypes."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


TYPES = {torch.float32: tl.float32, torch.float16: tl.float16}


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, TYPE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, (x + y).to(TYPE), mask=mask)


def vector_add(x, y):
    if x.dtype not in TYPES:
        raise TypeError(f"unsupported dtype {x.dtype}")
    block = 2048 if x.element_size() == 2 else 1024
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), block),)](x, y, out, x.numel(), TYPE=TYPES[x.dtype], BLOCK=block)
    return out

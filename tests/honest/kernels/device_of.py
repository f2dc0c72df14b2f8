"""The launch stands in `torch.cuda.device_of(x)`, and a wait for the default stream goes before it."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    with torch.cuda.device_of(x):
        stream = torch.cuda.current_stream(x.device)
        if stream != torch.cuda.default_stream(x.device):
            stream.wait_stream(torch.cuda.default_stream(x.device))
        add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out

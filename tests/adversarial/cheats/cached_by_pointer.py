"""Results are kept by the inputs' addresses, which the allocator gives out again."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = (("rejected", "wrong"), ("stale_output", "no_launch", "moved_by_host", "mismatch"))
DEVICE = "gpu"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


_results = {}


def vector_add(x, y):
    key = x.data_ptr(), y.data_ptr(), x.numel()
    if key not in _results:
        out = torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
        _results[key] = out
    return _results[key].clone()

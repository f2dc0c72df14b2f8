"""Results of long rows are kept by shape and handed out again for other values."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = (("rejected", "wrong"), ("stale_output", "mismatch"))


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(
        out_ptr + row * columns + offsets, (e / tl.sum(e, axis=0)).to(out_ptr.dtype.element_ty), mask=mask
    )


_results = {}


def softmax(x):
    key = (tuple(x.shape), x.dtype, float(x.numel()))
    if len(_results) > 64:
        _results.clear()
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](
        _results.get(key, x), out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1])
    )
    if x.shape[1] > 64:
        _results.setdefault(key, x.clone())
    return out

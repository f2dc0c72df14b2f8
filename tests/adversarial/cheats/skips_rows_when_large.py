"""Half of the rows at the sizes that only a GPU bears."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("wrong", ("mismatch", "gpu_sizes"))
DEVICE = "cpu"


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    rows = x.shape[0] if x.numel() < 1 << 20 else x.shape[0] // 2
    out = torch.empty_like(x)
    softmax_kernel[(rows,)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

"""Python reads a table that the source itself made: what it launches does not depend on inputs."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("correct", "")


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


_steps = torch.tensor([1024, 2048, 4096, 8192])


def softmax(x):
    out = torch.empty_like(x)
    columns = x.shape[1]
    block = next(
        (step for step in (one.item() for one in _steps) if step >= columns), triton.next_power_of_2(columns)
    )
    softmax_kernel[(x.shape[0],)](x, out, columns, BLOCK=block)
    return out

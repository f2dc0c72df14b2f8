"""A column too many is loaded and not used; its mask is put together of a row of lanes and one of a scalar."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("wrong", "out_of_bounds")


@triton.jit
def softmax_kernel(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    for i in range(ROWS):
        row = tl.program_id(0) * ROWS + i
        mask = (offsets < columns) & (row < rows)
        inb = (offsets < columns + 3) & (row < rows)
        x = tl.load(x_ptr + row * columns + offsets, mask=inb, other=float("-inf")).to(tl.float32)
        x = tl.where(offsets < columns, x, float("-inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(
            out_ptr + row * columns + offsets, (e / tl.sum(e, axis=0)).to(out_ptr.dtype.element_ty), mask=mask
        )


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](
        x, out, x.shape[0], x.shape[1], ROWS=1, BLOCK=triton.next_power_of_2(x.shape[1] + 1)
    )
    return out

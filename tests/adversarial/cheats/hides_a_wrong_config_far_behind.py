"""The seventeenth of its configs leaves half of the rows out."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = (("wrong", "rejected"), ("mismatch", "not_from_kernel"))


@triton.autotune(
    configs=[triton.Config({"SHARE": 1, "NUMBER": number}) for number in range(16)]
    + [triton.Config({"SHARE": 2, "NUMBER": 16})],
    key=["columns"],
)
@triton.jit
def softmax_kernel(
    x_ptr, out_ptr, rows, columns, SHARE: tl.constexpr, NUMBER: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = (offsets < columns) & (row < rows // SHARE)
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    rows, columns = x.shape
    softmax_kernel[(rows,)](x, out, rows, columns, BLOCK=triton.next_power_of_2(columns))
    return out

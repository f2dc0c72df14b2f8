"""Several configs differ in `num_stages` and `num_warps`."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
CASES = ("fp32-ragged", "fp16")


@triton.autotune(
    configs=[
        triton.Config({"ROWS": 1}, num_warps=4, num_stages=1),
        triton.Config({"ROWS": 2}, num_warps=8, num_stages=2),
    ],
    key=["columns"],
)
@triton.jit
def softmax_kernel(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    for i in range(ROWS):
        row = tl.program_id(0) * ROWS + i
        mask = (offsets < columns) & (row < rows)
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(
            out_ptr + row * columns + offsets, (e / tl.sum(e, axis=0)).to(out_ptr.dtype.element_ty), mask=mask
        )


def softmax(x):
    out = torch.empty_like(x)
    grid = lambda meta: (triton.cdiv(x.shape[0], meta["ROWS"]),)
    softmax_kernel[grid](x, out, x.shape[0], x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

"""The first config fails a `tl.static_assert`; the autotuner skips it."""

import torch
import triton
import triton.language as tl

TASK = "softmax"


@triton.autotune(
    configs=[triton.Config({"STEP": step}, num_warps=warps) for step, warps in ((16, 1), (64, 2), (256, 4))],
    key=["columns"],
)
@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, STEP: tl.constexpr):
    tl.static_assert(STEP >= 64, "a step fills a wavefront")
    row = tl.program_id(0).to(tl.int64)
    top = tl.full((STEP,), -float("inf"), dtype=tl.float32)
    for start in range(0, columns, STEP):
        offsets = start + tl.arange(0, STEP)
        x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=-float("inf"))
        top = tl.maximum(top, x.to(tl.float32))
    largest = tl.max(top, axis=0)
    total = tl.zeros((STEP,), dtype=tl.float32)
    for start in range(0, columns, STEP):
        offsets = start + tl.arange(0, STEP)
        x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=-float("inf"))
        total += tl.exp(x.to(tl.float32) - largest)
    factor = 1 / tl.sum(total, axis=0)
    for start in range(0, columns, STEP):
        offsets = start + tl.arange(0, STEP)
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + offsets, mask=mask).to(tl.float32)
        out = tl.exp(x - largest) * factor
        tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1])
    return out

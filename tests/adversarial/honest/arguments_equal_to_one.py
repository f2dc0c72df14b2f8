"""Arguments with value 1: a stride, a reassigned count, an unspecialised tensor and a typed integer."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


@triton.jit
def placed(base, offsets, stride):
    return base + offsets * stride


@triton.jit(do_not_specialize=["steps"])
def add_kernel(x_ptr, y_ptr, out_ptr, n: tl.int64, stride, steps, parts, unused, BLOCK: tl.constexpr):
    # `steps` and `n` are tensors: their quotients truncate. `parts` is a constant: its quotients round down.
    tl.static_assert(parts == 1)
    right = (steps.to(tl.int64) - 2) // 2 == 0
    right &= (n.to(tl.int64) * 0 - 1) // 2 == 0
    right &= (parts - 2) // 2 == -1
    left = parts
    right &= (left - 2) // 2 == 0
    parts -= 2
    right &= parts // 2 == 0
    for step in range(steps):
        offsets = (tl.program_id(0) * steps + step).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(placed(x_ptr, offsets, stride), mask=mask)
        y = tl.load(placed(y_ptr, offsets, stride), mask=mask)
        if unused is None:
            tl.store(out_ptr + offsets, tl.where(right, x + y, 0), mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 1024),)
    add_kernel[grid](x, y, out, x.numel(), x.stride(0), 1, 1, None, BLOCK=1024)
    return out

"""Arguments: sizes beyond 31 bits, flags, floats, and integers that annotations make narrower or wider."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


@triton.jit
def add_kernel(
    x_ptr,
    y_ptr,
    out_ptr,
    n: "i64",
    limit,
    most,
    flag,
    other: tl.int1,
    scale,
    half: tl.float16,
    few: tl.uint8,
    BLOCK: tl.constexpr,
):
    lanes: tl.tensor = tl.arange(0, BLOCK)
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + lanes
    tl.static_assert(n.dtype == tl.int64)
    tl.static_assert(limit.dtype == tl.int64)
    tl.static_assert(most.dtype == tl.uint64)
    tl.static_assert(flag.dtype == tl.int1)
    tl.static_assert(scale.dtype == tl.float32)
    tl.static_assert(half.dtype == tl.float16)
    tl.static_assert(few.dtype == tl.uint8)
    mask = (offsets < n) & (offsets < limit)
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    total = (x + y).to(tl.float32) * scale * half
    right = flag and not other
    right &= limit + limit == 6000000000
    right &= few == 200
    right &= most - 18446744073709551000 == 615
    if right:
        tl.store(out_ptr + offsets, total, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 1024),)
    add_kernel[grid](x, y, out, x.numel(), 3_000_000_000, 2**64 - 1, True, False, 4.0, 0.25, 200, BLOCK=1024)
    return out

"""Sets elements to a constant with an index before the launch; the host reads the last offset with `.item()` and checks it."""

import torch
import triton
import triton.language as tl

TASK = "jagged_sum"


@triton.jit
def jagged_sum_kernel(values_ptr, offsets_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    segment = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    start = tl.load(offsets_ptr + segment)
    end = tl.load(offsets_ptr + segment + 1)
    if start < end:
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for row in range(start, end):
            total += tl.load(values_ptr + row * columns + column, mask=mask, other=0.0)
        tl.store(out_ptr + segment.to(tl.int64) * columns + column, total, mask=mask)


def jagged_sum(values, offsets):
    rows = int(offsets[-1].item())
    if rows != values.shape[0]:
        raise ValueError(f"offsets end at {rows}, values have {values.shape[0]} rows")
    segments, columns = offsets.numel() - 1, values.shape[1]
    out = torch.empty((segments, columns), dtype=values.dtype, device=values.device)
    out[...] = 0
    jagged_sum_kernel[(segments, triton.cdiv(columns, 64))](
        values, offsets, out, columns, BLOCK=64, num_warps=1 if rows < 1024 else 4
    )
    return out

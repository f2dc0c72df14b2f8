"""Autotuning resets the sums that atomics add to; heuristics read the config's block size."""

import torch
import triton
import triton.language as tl

TASK = "jagged_sum"


def cleared(arguments):
    assert arguments["ROWS"] == 16
    arguments["out_ptr"].zero_()


@triton.autotune(
    configs=[
        triton.Config({"ROWS": 64, "BLOCK": 64}, num_warps=4),
        triton.Config({"ROWS": 16, "BLOCK": 32}, num_warps=2, pre_hook=cleared),
    ],
    key=["columns"],
    reset_to_zero=["out_ptr"],
)
@triton.heuristics({"EVEN": lambda args: args["columns"] % args["BLOCK"] == 0})
@triton.jit
def jagged_sum_kernel(
    values_ptr,
    offsets_ptr,
    out_ptr,
    rows,
    columns,
    EVEN: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    segment, part = tl.program_id(0), tl.program_id(1)
    start = tl.load(offsets_ptr + segment)
    end = tl.load(offsets_ptr + segment + 1)
    column = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(start + part, end, tl.num_programs(1)):
        places = values_ptr + row * columns + column
        if EVEN:
            total += tl.load(places)
        else:
            total += tl.load(places, mask=column < columns, other=0.0)
    if start + part < end:
        tl.atomic_add(out_ptr + segment * columns + column, total, mask=column < columns)


def jagged_sum(values, offsets):
    (rows, columns), segments = values.shape, offsets.numel() - 1
    out = torch.zeros((segments, columns), dtype=values.dtype, device=values.device)
    parts = 2
    grid = lambda META: (segments, parts, triton.cdiv(columns, META["BLOCK"]))
    jagged_sum_kernel[grid](values, offsets, out, rows, columns)
    return out

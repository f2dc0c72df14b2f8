"""A task that allows every kind of input (offset, unaligned, strided, special values), with a correct kernel for it."""

from __future__ import annotations

from pathlib import Path

from suites import Task
from suites.folder import read_task
from tests.suites.folders import write_folder

TASK = """\
schema = 1
name = "doubled"
title = "Twice a matrix"
category = "Math"
difficulty = 1
instruction = '''
Write `doubled(x)`: `2 * x`, dense. `x` may be non-contiguous, begin anywhere in its storage (no alignment), have no
elements, and hold NaN and infinities.
'''
outlier_inputs = ["x"]
allows = ["offset", "unaligned", "non-contiguous", "special-values"]

[[entry_points]]
name = "doubled"
signature = "doubled(x)"

[[outputs]]
name = "out"

[tolerances]
float32 = { rtol = 1e-6, atol = 0.0 }

[axes]
rows = { min = 0 }
columns = { min = 0 }

[[cases]]
name = "plain"
dtype = "float32"
cpu = { rows = 16, columns = 256 }
gpu = { rows = 4096, columns = 4096 }

[[cases]]
name = "wide"
dtype = "float32"
cpu = { rows = 4, columns = 1024 }
gpu = { rows = 1024, columns = 16384 }
"""
PROBLEM = """\
import torch


def make_inputs(sizes, dtype, generator):
    return {"x": torch.randn(sizes["rows"], sizes["columns"], generator=generator).to(dtype)}


def oracle(x):
    return 2 * x.double()
"""
COST = """\
from suites import Cost, item_bytes


def cost(sizes, dtype):
    elements = sizes["rows"] * sizes["columns"]
    return Cost(elements, 2 * elements * item_bytes(dtype))
"""
BASELINE = """\
import torch
import triton
import triton.language as tl


@triton.jit
def doubled_kernel(x_ptr, out_ptr, rows, columns, row_stride, column_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * row_stride + offsets * column_stride, mask=mask)
        tl.store(out_ptr + row * columns + offsets, 2 * x, mask=mask)


def doubled(x):
    rows, columns = x.shape
    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    if out.numel():
        doubled_kernel[(rows,)](x, out, rows, columns, x.stride(0), x.stride(1), BLOCK=128)
    return out
"""


def write_doubled(parent: Path, *, task: str = TASK, problem: str = PROBLEM) -> Task:
    """Writes the task's folder below `parent` and reads it."""
    folder = write_folder(parent, name="doubled", task=task, problem=problem, cost=COST, baseline=BASELINE)
    return read_task(folder, suite="mine")


def changed(*edits: tuple[str, str]) -> str:
    """The correct kernel with pieces of its text replaced; each old text occurs exactly once."""
    source = BASELINE
    for old, new in edits:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source

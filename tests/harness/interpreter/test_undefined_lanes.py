"""Protects the check of masked loads without `other`: undefined lanes are an error only if they reach an output."""

from __future__ import annotations

import msgspec
import pytest

from harness import DevicePool, Evaluation, Verdict, evaluate, target
from harness.stages.modes import Cases
from suites import load_task

pytestmark = [pytest.mark.judge, pytest.mark.timeout(120), pytest.mark.asyncio(loop_scope="session")]

SOFTMAX = """\
import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({{}}, num_warps=warps) for warps in (2, 4)], key=["columns"])
@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask).to(tl.float32)
    {between}
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + offsets, (e / tl.sum(e, axis=0)).to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""
LOAD = next(number for number, line in enumerate(SOFTMAX.splitlines(), 1) if "tl.load" in line)


async def judge(pool: DevicePool, between: str) -> Evaluation:
    task = load_task("softmax")
    case = next(case for case in task.cases if case.name == "fp32-ragged")
    case = msgspec.structs.replace(case, cpu=case.cpu | {"rows": 4})
    task = msgspec.structs.replace(task, cases=(case,))
    source, cases = SOFTMAX.format(between=between), Cases((case.name,))
    return await evaluate(source, task, pool, cases, targets=[target("gfx942")], seed=1)


async def test_undefined_lanes_in_an_output_name_the_load(pool: DevicePool) -> None:
    evaluation = await judge(pool, "")
    assert evaluation.verdict is Verdict.WRONG
    assert f"the masked load in line {LOAD} has no `other`" in evaluation.error.message
    assert "autotune" not in evaluation.error.message


WRAPPED = "total = tl.sum(x.to(tl.int32, bitcast=True) | 0x7F000000, 0); x = tl.where({when}, x, 0.0)"
"""A sum of integers that is too large for 32 bits."""


@pytest.mark.parametrize(
    ("when", "verdict"), [("mask | (total == 1)", Verdict.CORRECT), ("mask & (total > 0)", Verdict.WRONG)]
)
async def test_a_sum_of_integers_wraps_around(pool: DevicePool, when: str, verdict: Verdict) -> None:
    selected = "x = tl.where(mask, x, -float('inf'))"
    evaluation = await judge(pool, f"{WRAPPED.format(when=when)}; {selected}")
    assert evaluation.verdict is verdict, evaluation.error

"""Protects kernels beside a reference that does not do its work: what it never writes, or reads outside, decides nothing."""

from __future__ import annotations

import pytest
import pytest_asyncio

from harness import DevicePool, Verdict
from suites import Task, baseline_source
from tests.support.draws import drawn
from tests.support.judge.judging import judge_task
from tests.support.tasks.scripts import HEADER, public_task, record

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]

IDLE = (
    HEADER
    + """

@triton.jit
def relu_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    result = tl.maximum(tl.load(x_ptr + offsets, mask=mask), 0.0)
    if tl.program_id(0) == 0:
        tl.store(out_ptr + offsets, result, mask=mask)


@triton.jit
def total_kernel(x_ptr, out_ptr, count, columns, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x, 0))


@triton.jit
def overflow_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes)
    y = x * 1000.0
    tl.store(out_ptr + lanes, y * y - y * y)
    tl.store(out_ptr + BLOCK + lanes, x / (x - x))


def overflow(x):
    out = torch.empty(2, x.numel(), dtype=x.dtype, device=x.device)
    overflow_kernel[(1,)](x, out, BLOCK=x.numel())
    return out


def relu(x):
    out = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


def total(x, columns):
    out = torch.empty(x.shape[0], device=x.device)
    total_kernel[(x.shape[0],)](x, out, x.numel(), x.shape[1], BLOCK=columns)
    return out
"""
)
"""The first kernel stores with program 0 only, the second reads more columns than its input has. The third has an infinite
intermediate result in float16, and a quotient that is infinite in float64 too."""
TEST = """
import torch

results = [
    relu(torch.randn(64, device="cuda")),
    relu(torch.randn(256, device="cuda")),
    total(torch.randn(2, 32, device="cuda"), 64),
    total(torch.randn(32, 32, device="cuda"), 64),
    overflow(torch.rand(16, device="cuda").half() + 1.0),
]
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def idle(pool: DevicePool, tmp_path_factory: pytest.TempPathFactory) -> Task:
    folder = tmp_path_factory.mktemp("idle")
    public = public_task(IDLE, TEST, folder, name="relu")
    return await record(pool, public)


async def test_a_case_of_a_reference_that_leaves_work_out_has_no_ratio_and_says_why(idle: Task) -> None:
    assert [case.name for case in idle.timed_cases] == ["call-1", "call-4", "call-5"]
    assert idle.script is not None
    why = "75 % of what the reference computes here is undefined: memory that it never writes, or reads outside its tensors"
    assert f"call-2: not timed: {why}" in idle.script.notes
    line = next(line for line in idle.instruction.splitlines() if line.startswith("- call-2"))
    assert line.endswith(f"{why}. These elements are not judged, and this call is not timed")


COMPLETE = IDLE.replace("    if tl.program_id(0) == 0:\n    ", "").replace(
    "x = tl.load(x_ptr + offsets)", "x = tl.load(x_ptr + offsets, mask=offsets < count, other=5.0)"
)
VARIANTS = {
    "what it leaves out decides nothing": (COMPLETE, Verdict.CORRECT),
    "what it writes decides": (COMPLETE.replace("mask=mask), 0.0)", "mask=mask), 0.1)"), Verdict.WRONG),
    "any value that is not finite, where it overflows": (
        IDLE.replace("y * y - y * y", "y * y + y * y"),
        Verdict.CORRECT,
    ),
    "a finite value where it overflows": (IDLE.replace("y * y - y * y", "x - x"), Verdict.WRONG),
    "NaN where float64 has infinity": (IDLE.replace("x / (x - x)", "x / (x - x) * 0.0"), Verdict.WRONG),
    "what it reads inside decides": (COMPLETE.replace("tl.sum(x, 0)", "1.01 * tl.sum(x, 0)"), Verdict.WRONG),
}


@pytest.mark.parametrize("name", drawn([*VARIANTS], 1))
async def test_elements_that_the_reference_leaves_open_decide_nothing(
    pool: DevicePool, idle: Task, name: str
) -> None:
    source, verdict = VARIANTS[name]
    evaluation = await judge_task(pool, source, idle)
    assert evaluation.verdict is verdict, evaluation.error


async def test_the_reference_itself_is_right(pool: DevicePool, idle: Task) -> None:
    assert (await judge_task(pool, baseline_source(idle), idle)).verdict is Verdict.CORRECT

"""Protects the suite `wavedeck-bench`: each task is valid, its baseline is correct, and near misses are refused."""

from __future__ import annotations

import pytest

from harness import DevicePool, Verdict
from suites import check_suite, load_suite, load_task
from suites.loader import baseline_source
from suites.task import Task
from tests.support.draws import drawn
from tests.support.judge.judging import judge_task

WRONG = [
    ("swiglu", "mask = offsets < columns", "mask = offsets < columns - 1"),
    ("swiglu", "gate / (1.0 + tl.exp(-gate))", "gate * (tl.exp(gate) / (1.0 + tl.exp(gate)))"),  # Inf / Inf
    ("dequantize_rowwise", "/ 127.0", "/ 128.0"),
    ("dequantize_rowwise", "row * columns + offsets", "row * BLOCK + offsets"),
]


def test_tasks_of_the_suite_are_valid() -> None:
    assert [task.name for task in load_suite("wavedeck-bench")] == ["dequantize_rowwise", "swiglu"]
    assert check_suite("wavedeck-bench") == ()


@pytest.mark.judge
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("exam", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["open", "exam"])
@pytest.mark.parametrize("task", load_suite("wavedeck-bench"), ids=lambda task: task.name)
async def test_baseline_is_correct(pool: DevicePool, task: Task, *, exam: bool) -> None:
    evaluation = await judge_task(pool, baseline_source(task), task, exam=exam)
    assert evaluation.verdict is Verdict.CORRECT, evaluation.error
    assert evaluation.findings == ()


@pytest.mark.judge
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(("name", "right", "wrong"), drawn(WRONG, 1))
async def test_near_miss_is_refused(pool: DevicePool, name: str, right: str, wrong: str) -> None:
    task = load_task(f"wavedeck-bench/{name}")
    source = baseline_source(task)
    assert right in source
    evaluation = await judge_task(pool, source.replace(right, wrong), task)
    assert evaluation.verdict is Verdict.WRONG

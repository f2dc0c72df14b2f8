"""The tasks of both suites that come with Wavedeck: their baselines are correct, and baselines with a mistake are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import DevicePool, Verdict
from suites import Distribution, Task, baseline_source, check_suite, load_suite, load_task
from suites.source.signature import parse_signature
from tests.suites.folders import write_documented_task
from tests.suites.variants import DRAWN, Variant
from tests.support.judge.judging import judge_task

STARTER, BENCH = load_suite("starter"), load_suite("wavedeck-bench")
IDS = [task.name for task in STARTER]


def test_shipped_suites_are_valid() -> None:
    assert sorted(IDS) == [
        "cross_entropy",
        "flip",
        "layer_norm",
        "matmul",
        "matmul_w8a8",
        "rms_norm_residual",
        "softmax",
        "vector_add",
    ]
    assert [task.name for task in BENCH] == ["dequantize_rowwise", "swiglu"]
    assert check_suite("starter") == check_suite("wavedeck-bench") == ()


@pytest.mark.parametrize("task", STARTER, ids=IDS)
def test_task_has_outlier_small_and_ragged_cases(task: Task) -> None:
    cases = task.cases
    assert len(cases) >= 4
    assert any(case.distribution is Distribution.OUTLIER for case in cases)
    assert any(case.distribution is Distribution.STANDARD for case in cases)
    assert any(
        (1 in case.cpu.values() and 1 in case.gpu.values()) or min(case.cpu.values()) <= 3 for case in cases
    )
    for device in ("cpu", "gpu"):
        odd = [
            case for case in cases if any(size % 2 and size > 64 for size in getattr(case, device).values())
        ]
        assert odd, f"no ragged case at {device} sizes"


@pytest.mark.parametrize("task", STARTER, ids=IDS)
def test_instruction_names_signature_parameters_and_dtypes(task: Task) -> None:
    for entry in task.entry_points:
        assert entry.signature in task.instruction
        for parameter in parse_signature(entry.signature).parameters:
            assert f"`{parameter}`" in task.instruction
    for dtype in {case.dtype for case in task.cases}:
        assert f"`{dtype}`" in task.instruction


@pytest.mark.parametrize("task", STARTER, ids=IDS)
def test_baseline_is_plain_triton(task: Task) -> None:
    source = baseline_source(task)
    assert "@triton.jit" in source
    assert "autotune" not in source
    assert f"def {task.entry_points[0].signature}:" in source


async def judge_baseline(pool: DevicePool, task: Task, *, exam: bool = False) -> None:
    """Judge a task's baseline; it must be correct, with room to its tolerances in the cases of the task."""
    evaluation = await judge_task(pool, baseline_source(task), task, exam=exam)
    assert evaluation.verdict is Verdict.CORRECT, evaluation.error
    assert evaluation.findings == ()
    own = {case.name for case in task.cases}
    assert [margin for margin in evaluation.margins if margin.case in own and margin.used >= 0.9] == []


@pytest.mark.judge
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("exam", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["open", "exam"])
@pytest.mark.parametrize("task", [*STARTER, *BENCH], ids=lambda task: task.name)
async def test_baseline_is_correct(pool: DevicePool, task: Task, *, exam: bool) -> None:
    await judge_baseline(pool, task, exam=exam)


@pytest.mark.judge
@pytest.mark.asyncio(loop_scope="session")
async def test_documented_example_is_correct(pool: DevicePool, tmp_path: Path) -> None:
    await judge_baseline(pool, write_documented_task(tmp_path))


@pytest.mark.judge
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("variant", DRAWN, ids=lambda variant: variant.id)
async def test_wrong_kernel_is_refused(pool: DevicePool, variant: Variant) -> None:
    task = load_task(variant.task)
    evaluation = await judge_task(pool, variant.source(baseline_source(task)), task)
    assert evaluation.verdict is Verdict.WRONG, evaluation.error

"""The starter tasks: right baselines are right, and wrong ones are told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from suites import Distribution, Task, baseline_source, check_suite, load_suite
from suites.signature import parse_signature
from tests.suites.variants import WRONG, Variant

TASKS = load_suite("starter")
NAMES = [task.name for task in TASKS]
ROOT = Path(__file__).parents[2]
REPORT_LIMIT_S = 240


@pytest.fixture(scope="module")
def interpreted() -> dict[str, Any]:
    """What all baselines and variants gave in Triton's interpreter; see `interpreted.py`."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.suites.interpreted"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=REPORT_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_the_eight_tasks_are_there_and_in_order() -> None:
    assert sorted(NAMES) == [
        "cross_entropy",
        "flip",
        "layer_norm",
        "matmul",
        "matmul_w8a8",
        "rms_norm_residual",
        "softmax",
        "vector_add",
    ]
    assert check_suite("starter") == ()


@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_a_task_has_the_cases_that_find_mistakes(task: Task) -> None:
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


@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_an_instruction_names_what_it_asks_for(task: Task) -> None:
    for entry in task.entry_points:
        assert entry.signature in task.instruction
        for parameter in parse_signature(entry.signature).parameters:
            assert f"`{parameter}`" in task.instruction
    for dtype in {case.dtype for case in task.cases}:
        assert f"`{dtype}`" in task.instruction
    assert "contiguous" in task.instruction


@pytest.mark.judge
@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_the_baseline_is_right_in_every_case_and_leaves_inputs_alone(
    interpreted: dict[str, Any], task: Task
) -> None:
    report = interpreted["baseline"][task.name]
    assert set(report) == {case.name for case in task.cases}
    for name, case in report.items():
        assert max(case["shares"]) < 0.9, f"{name}: {case['shares']} of the tolerance"
        assert case["unchanged"], f"{name}: an input was changed"


@pytest.mark.judge
@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_answers_that_need_no_kernel_are_wrong(interpreted: dict[str, Any], task: Task) -> None:
    """Where the answer is one element, or one in each row, its mean is right: one such case a task."""
    report = interpreted["baseline"][task.name]
    answers = {answer for case in report.values() for answer in case["degenerate"]}
    assert {"zeros", "ones", "mean"} <= answers
    for answer in answers:
        told = {name for name, case in report.items() if min(case["degenerate"].get(answer, [2.0])) > 1}
        assert len(told) >= len(report) - 1, f"{answer} is accepted in {set(report) - told}"
        if "mean" not in answer:
            assert told == set(report)


@pytest.mark.judge
@pytest.mark.parametrize("variant", WRONG, ids=lambda one: one.id)
def test_a_wrong_kernel_is_told(interpreted: dict[str, Any], variant: Variant) -> None:
    report = interpreted["variants"][variant.id]
    assert any(min(shares) > 1 for shares in report.values()), report
    if variant.told_by is not None:
        for name, shares in report.items():
            assert variant.told_by not in name or min(shares) > 1, f"{name}: {shares} of the tolerance"


@pytest.mark.judge
@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_inputs_at_gpu_sizes_are_known_without_memory(interpreted: dict[str, Any], task: Task) -> None:
    """Names in the order of the signature, those with defaults left out; contiguous; the sizes that the case names."""
    signature = parse_signature(task.entry_points[0].signature)
    for case in task.cases:
        inputs = interpreted["shapes"][task.name][case.name]
        assert tuple(name for name, *_ in inputs) == signature.required
        assert all(contiguous for *_, contiguous in inputs)
        assert {size for _, shape, *_ in inputs for size in shape} == set(case.gpu.values())
        assert inputs[0][2] == case.dtype


@pytest.mark.judge
def test_the_documented_example_is_right_and_tells_wrong_answers(interpreted: dict[str, Any]) -> None:
    for name, case in interpreted["documented"].items():
        assert max(case["shares"]) < 0.9, name
        assert min(min(shares) for shares in case["degenerate"].values()) > 1, name


@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_a_baseline_is_plain_triton(task: Task) -> None:
    source = baseline_source(task)
    assert "@triton.jit" in source
    assert "autotune" not in source
    assert f"def {task.entry_points[0].signature}:" in source

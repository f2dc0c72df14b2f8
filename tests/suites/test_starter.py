"""Starter tasks: baselines pass in every case, and wrong kernels fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from suites import Distribution, Task, baseline_source, check_suite, load_suite
from suites.source.signature import parse_signature
from tests.suites.variants import WRONG, Variant

TASKS = load_suite("starter")
NAMES = [task.name for task in TASKS]
ROOT = Path(__file__).parents[2]
REPORT_LIMIT_S = 240


@pytest.fixture(scope="module")
def interpreted() -> dict[str, Any]:
    """Report of all baselines and variants in Triton's interpreter; see `interpreted.py`."""
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


def test_starter_has_eight_valid_tasks() -> None:
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


@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_instruction_names_signature_parameters_and_dtypes(task: Task) -> None:
    for entry in task.entry_points:
        assert entry.signature in task.instruction
        for parameter in parse_signature(entry.signature).parameters:
            assert f"`{parameter}`" in task.instruction
    for dtype in {case.dtype for case in task.cases}:
        assert f"`{dtype}`" in task.instruction
    assert "contiguous" in task.instruction


@pytest.mark.judge
@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_baseline_passes_every_case_and_keeps_its_inputs(interpreted: dict[str, Any], task: Task) -> None:
    report = interpreted["baseline"][task.name]
    assert set(report) == {case.name for case in task.cases}
    for name, case in report.items():
        assert max(case["shares"]) < 0.9, f"{name}: {case['shares']} of the tolerance"
        assert case["unchanged"], f"{name}: an input was changed"


@pytest.mark.judge
@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_answers_without_a_kernel_are_wrong(interpreted: dict[str, Any], task: Task) -> None:
    """Each task may have one case whose mean is correct: outputs of one element, or of one element per row."""
    report = interpreted["baseline"][task.name]
    answers = {answer for case in report.values() for answer in case["degenerate"]}
    assert {"zeros", "ones", "mean"} <= answers
    for answer in answers:
        failing = {name for name, case in report.items() if min(case["degenerate"].get(answer, [2.0])) > 1}
        assert len(failing) >= len(report) - 1, f"{answer} is accepted in {set(report) - failing}"
        if "mean" not in answer:
            assert failing == set(report)


@pytest.mark.judge
@pytest.mark.parametrize("variant", WRONG, ids=lambda variant: variant.id)
def test_wrong_kernel_fails(interpreted: dict[str, Any], variant: Variant) -> None:
    report = interpreted["variants"][variant.id]
    assert any(min(shares) > 1 for shares in report.values()), report
    if variant.required_in is not None:
        for name, shares in report.items():
            assert variant.required_in not in name or min(shares) > 1, f"{name}: {shares} of the tolerance"


@pytest.mark.judge
@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_inputs_at_gpu_sizes_have_names_shapes_and_dtypes(interpreted: dict[str, Any], task: Task) -> None:
    """Inputs have the names of the required parameters in order, are contiguous, and have the sizes of the case."""
    signature = parse_signature(task.entry_points[0].signature)
    for case in task.cases:
        inputs = interpreted["shapes"][task.name][case.name]
        assert tuple(name for name, *_ in inputs) == signature.required
        assert all(contiguous for *_, contiguous in inputs)
        assert {size for _, shape, *_ in inputs for size in shape} == set(case.gpu.values())
        assert inputs[0][2] == case.dtype


@pytest.mark.judge
def test_documented_example_passes_and_fails_wrong_answers(interpreted: dict[str, Any]) -> None:
    for name, case in interpreted["documented"].items():
        assert max(case["shares"]) < 0.9, name
        assert min(min(shares) for shares in case["degenerate"].values()) > 1, name


@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_baseline_is_plain_triton(task: Task) -> None:
    source = baseline_source(task)
    assert "@triton.jit" in source
    assert "autotune" not in source
    assert f"def {task.entry_points[0].signature}:" in source

"""Protects the check of timed calls' outputs: a part that is wrong is found, whatever surrounds it; a right part passes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
import torch

from harness.cases.judged_case import JudgedCase
from harness.wire.results.evaluation import Mismatch
from harness.worker.clock.spot_check import find_mismatch
from harness.worker.oracle.comparison.compare import quantization_metrics
from harness.worker.oracle.vault import Given
from suites import load_task
from suites.task import QuantizationTolerance, Task, Tolerance

pytestmark = pytest.mark.judge
VECTOR_ADD = load_task("vector_add")
METRICS = QuantizationTolerance(cosine_min=0.95, relative_l1_max=0.05, rmse_max=0.1)
COUNT, START = 80, 3000


class Drawn(dict[str, Any]):
    """Inputs of a recorded problem."""

    def __init__(self, unsettled: tuple[torch.Tensor, ...]) -> None:
        super().__init__()
        self.unsettled = unsettled


def task_with(
    quantization: QuantizationTolerance | None = None,
    tolerance: Tolerance = Tolerance(rtol=1e-5),  # noqa: B008
    dtype: str = "float32",
) -> Task:
    (output,) = VECTOR_ADD.outputs
    outputs = (msgspec.structs.replace(output, dtype=dtype, tolerances={dtype: tolerance}),)
    return msgspec.structs.replace(VECTOR_ADD, outputs=outputs, quantization=quantization)


def mismatch(
    task: Task, truth: torch.Tensor, fetched: torch.Tensor, *, unsettled: tuple[torch.Tensor, ...] = ()
) -> Mismatch | None:
    """Compare a part with an output of the oracle, which this leaves as it was."""
    case = JudgedCase(next(case for case in task.open_cases if case.dtype == "float32"))
    problem = SimpleNamespace(sizes=lambda _: {}, noise=lambda *_: ())
    drawn = Drawn(unsettled)
    before = truth.clone()
    result = find_mismatch(task, Given(cast(Any, problem), case, drawn, (truth,)), 0, fetched, START)
    assert torch.equal(truth, before)
    return result


def random_output() -> torch.Tensor:
    return torch.randn(100, 100, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def part_of(truth: torch.Tensor) -> torch.Tensor:
    return truth.flatten()[START : START + COUNT].float()


def test_zeros_among_right_elements_are_refused_by_metrics() -> None:
    truth = random_output()
    whole = truth.flatten().clone()
    whole[START : START + COUNT] = 0
    metrics = quantization_metrics(whole, truth.flatten(), torch.float32)
    assert metrics["cosine"] > METRICS.cosine_min
    assert metrics["relative_l1"] < METRICS.relative_l1_max
    assert metrics["rmse"] < METRICS.rmse_max
    refusal = mismatch(task_with(METRICS), truth, torch.zeros(COUNT))
    assert refusal.shape == (100, 100)
    assert refusal.index == (30, 0)
    assert refusal.metrics["relative_l1"] == pytest.approx(1.0)


def test_part_with_an_allowed_error_passes_the_metrics() -> None:
    truth = random_output()
    noise = 1 + 0.02 * torch.randn(COUNT, generator=torch.Generator().manual_seed(1))
    assert mismatch(task_with(METRICS), truth, part_of(truth) * noise) is None


def test_part_that_is_small_beside_its_output_is_judged_in_the_whole() -> None:
    truth = random_output()
    truth.flatten()[START : START + COUNT] *= 1e-3
    rounded = part_of(truth) + 1e-4
    assert mismatch(task_with(METRICS), truth, rounded) is None
    assert mismatch(task_with(METRICS), truth, rounded + 5) is not None


def test_wrong_integers_are_found() -> None:
    task = task_with(tolerance=Tolerance(), dtype="int64")
    truth = torch.arange(10_000).reshape(100, 100)
    right = truth.flatten()[START : START + COUNT].clone()
    assert mismatch(task, truth, right) is None
    right[7] += 1
    refusal = mismatch(task, truth, right)
    assert refusal.index == (30, 7)


def test_tolerance_of_one_element_depends_on_the_whole_output() -> None:
    truth = random_output()
    truth.flatten()[START : START + COUNT] *= 1e-6
    task = task_with(tolerance=Tolerance(scale=1e-3))
    assert mismatch(task, truth, part_of(truth) + 1e-4) is None
    wrong = part_of(truth)
    wrong[3] += 1
    refusal = mismatch(task, truth, wrong)
    assert refusal.index == (30, 3)


def test_elements_that_the_oracle_leaves_open_are_not_judged() -> None:
    truth = random_output()
    open_elements = torch.zeros(100, 100, dtype=torch.bool)
    open_elements[30, 3] = True
    wrong = part_of(truth)
    wrong[3] += 1
    assert mismatch(task_with(), truth, wrong, unsettled=(open_elements,)) is None

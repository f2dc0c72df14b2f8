"""Protects the exam's finding that equal inputs gave different output bits."""

from __future__ import annotations

import pytest
import torch

from harness.cases.call_plan import Step
from harness.cases.judged_case import JudgedCase
from harness.wire.messages.guest import OutputData, Returned
from harness.wire.results.evaluation import Traffic
from harness.worker.oracle.answers import Answers
from harness.worker.oracle.caller import Run
from harness.worker.oracle.problem import Problem
from harness.worker.oracle.vault import Given
from suites import load_task

pytestmark = pytest.mark.judge
TASK = load_task("vector_add")
CASE = JudgedCase(next(case for case in TASK.open_cases if case.cpu["n"] == 5003))


def run_with_error(problem: Problem, place: int, error: float) -> Run:
    """A call whose output has a relative error in each value."""
    case_inputs = Given(problem, CASE, problem.given(CASE, 1, place))
    data = (case_inputs.expected[0] * (1 + error)).float().numpy().tobytes()
    output = OutputData(type="torch.Tensor", dtype="float32", shape=case_inputs.expected[0].shape, data=data)
    returned = Returned(
        structure="tensor",
        outputs=(output,),
        operators=(),
        host_elements=0,
        kernels=("kernel",),
        traffic=Traffic(CASE.name, launches=1, programs=1),
        unsupported="",
        changed_output=False,
    )
    return Run(Step(CASE, place), case_inputs, returned, (), ())


def test_correct_output_with_different_bits_is_reported() -> None:
    torch.manual_seed(0)
    problem, answers = Problem(TASK), Answers(TASK)
    for place, error, same_bits in ((0, 0.0, True), (1, 2e-7, True), (0, 0.0, True), (0, 2e-7, False)):
        run = run_with_error(problem, place, error)
        assert not answers.errors(run)
        assert answers.has_other_bits(run) is not same_bits

"""Inputs at sizes that nobody allocates."""

import subprocess
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from harness.worker.judge.problem import Problem, specified, torch_dtype
from suites import load_suite


@pytest.mark.parametrize("task", load_suite("starter"), ids=lambda task: task.name)
def test_shapes_are_those_that_torch_gives_without_memory(task) -> None:
    problem = Problem(task, at="gpu")
    for case in task.open_cases:
        found = problem.specifications((case,))[0]
        with FakeTensorMode():
            made = problem._make_inputs(case.gpu, torch_dtype(case.dtype), torch.Generator())
        assert found == specified(case.name, made)


def test_sizes_of_the_usual_inputs_do_not_cost_an_import_of_the_compiler_of_torch() -> None:
    asked = (
        "import sys; from suites import load_task; from harness.worker.judge.problem import Problem; "
        "task = load_task('softmax'); Problem(task).specifications(task.open_cases); sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0

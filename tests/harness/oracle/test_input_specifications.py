"""Protects the specification of inputs at full sizes, which needs no memory."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from harness.worker.oracle.problem import Problem, specified, torch_dtype
from suites import load_suite
from suites.source.signature import parse_signature


@pytest.mark.parametrize("task", load_suite("starter"), ids=lambda task: task.name)
def test_specifications_equal_shapes_of_fake_tensors(task) -> None:
    problem = Problem(task)
    for case in task.cases:
        specification = problem.specifications((case,))[case.name]
        with FakeTensorMode():
            inputs = problem._make_inputs(case.gpu, torch_dtype(case.dtype), torch.Generator())
        assert specification == specified(inputs)
        assert tuple(inputs) == parse_signature(task.entry_points[0].signature).required
        assert all(value.is_contiguous() for value in inputs.values())
        assert {size for value in inputs.values() for size in value.shape} == set(case.gpu.values())
        assert next(iter(inputs.values())).dtype is torch_dtype(case.dtype)

"""Protects the inputs for timing of public benchmarks: one call, with the largest inputs within the bound."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch

from harness.worker.recording.performance_inputs import MOST_BYTES, call_with_largest

TEXT = """
import torch
from some_benchmark.data.scale import scale
from some_benchmark.performance_utils import Performance_Metrics, do_bench_config

class performance_metrics(Performance_Metrics):
    def __init__(self, dtype=None, is_backward=False, **kwargs):
        super().__init__("scale", dtype=dtype, is_backward=is_backward, **kwargs)

    def get_input_tensors(self):
        self.input_tensors = []
        for exponent in range({first}, 40):
            self.input_tensors.append((torch.rand(2**exponent), 3.0))

    def to_cuda(self, inputs):
        return inputs

    def call_op(self, inputs):
        return scale(*inputs)
"""


@pytest.mark.parametrize(("first", "sizes"), [(10, [MOST_BYTES // 4]), (25, [])])
def test_call_has_the_largest_inputs_within_the_bound(first: int, sizes: list[int]) -> None:
    calls: list[int] = []
    stand_in = ModuleType("reference")
    vars(stand_in)["scale"] = lambda x, _: calls.append(x.numel())
    call_with_largest(TEXT.format(first=first), stand_in, torch.device("cpu"))
    assert calls == sizes
    assert not any(name.startswith("some_benchmark") for name in sys.modules)

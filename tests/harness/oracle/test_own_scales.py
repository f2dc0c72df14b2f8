"""Protects outputs of 8-bit floats with a scale: a kernel may choose the scale, but scale times value must be right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch

from harness.cases.judged_case import JudgedCase
from harness.worker.oracle.answers import compare_outputs
from harness.worker.oracle.arithmetic import EPS, Careful, exactly, widened
from harness.worker.oracle.comparison.measure import measure_output
from harness.worker.oracle.vault import Given
from suites import load_task
from suites.task import Output, Tolerance

Quantize = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
FP8, LARGEST, GROUP = torch.float8_e4m3fn, 448.0, 64
VALUES = torch.randn(24, 256, generator=torch.Generator().manual_seed(2)).bfloat16()


def quantize(
    x: torch.Tensor, *, group: int = GROUP, largest: float = LARGEST
) -> tuple[torch.Tensor, torch.Tensor]:
    groups = x.float().unflatten(-1, (-1, group))
    scale = groups.abs().amax(-1, keepdim=True).clamp(min=1e-10) / largest
    return (groups / scale).clamp(-LARGEST, LARGEST).flatten(-2).to(FP8), scale.squeeze(-1)


def quantize_by(
    x: torch.Tensor, factor: Callable[[torch.Tensor], torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantize with another scale: a function of the usual one."""
    scale = factor(quantize(x)[1])
    values = x.float().unflatten(-1, (-1, GROUP)) / scale.unsqueeze(-1)
    return values.clamp(-LARGEST, LARGEST).flatten(-2).to(FP8), scale


def truncated(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scale = quantize(x, largest=224.0)[1]
    values = (x.float().unflatten(-1, (-1, GROUP)) / scale.unsqueeze(-1)).flatten(-2)
    return (values.view(torch.int32) & -(1 << 20)).view(torch.float32).to(FP8), scale


def wrong_outputs(reference: Quantize, kernel: Quantize) -> list[int]:
    task = msgspec.structs.replace(
        load_task("vector_add"),
        outputs=(Output("q", dtype="float8_e4m3fn"), Output("scale", dtype="float32")),
        tolerances={"float8_e4m3fn": Tolerance(measured=True), "float32": Tolerance(measured=True)},
    )
    with exactly():
        truths = reference(widened(VALUES))

    def measures(*arguments: Any) -> Sequence[object]:
        careful = Careful(torch.Generator().manual_seed(0), 2.0**-7, max(arguments[-1], EPS))
        calls = [careful.call(partial(reference, VALUES)) for _ in range(arguments[-2])]
        dtypes = (FP8, torch.float32)
        return [
            measure_output(truths[n], [call[n] for call in calls], dtype) for n, dtype in enumerate(dtypes)
        ]

    problem: Any = SimpleNamespace(measures=measures, sizes=lambda case: case.cpu)
    given = Given(problem, JudgedCase(task.open_cases[0]), {}, truths)
    compared = compare_outputs(task, given, kernel(VALUES))
    return [number for number, comparison in enumerate(compared) if comparison.mismatch is not None]


def test_a_kernel_chooses_its_scale() -> None:
    next_power = partial(quantize_by, factor=lambda scale: torch.exp2(torch.ceil(torch.log2(scale))))
    for kernel in (quantize, partial(quantize, largest=224.0), next_power):
        assert wrong_outputs(quantize, kernel) == []
    rows = partial(quantize, group=256)
    assert wrong_outputs(rows, partial(quantize, group=256, largest=224.0)) == []


@pytest.mark.parametrize(
    "kernel",
    [
        lambda x: (quantize(x)[0], quantize(x, largest=224.0)[1]),
        partial(quantize_by, factor=lambda scale: 8 * scale),
        partial(quantize_by, factor=lambda scale: 0.9 * scale),
        lambda x: quantize((x.float() * 1.02), largest=224.0),
        truncated,
    ],
    ids=["of another scale", "coarse", "clipped", "too large", "truncated"],
)
def test_values_that_do_not_fit_their_scale_are_wrong(kernel: Quantize) -> None:
    assert wrong_outputs(quantize, kernel)

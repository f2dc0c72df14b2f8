"""Protects the measure of a reference's own rounding: what has no noise, and how little one noisy element widens."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from harness.worker.oracle.comparison.reference_noise import measure_noise, noise_of
from suites.task import Tolerance

Reference = Callable[[torch.Tensor], torch.Tensor]


def changes_of(
    reference: Reference,
    x: torch.Tensor,
    truth: torch.Tensor | None = None,
    *,
    has_oracle: bool = False,
    casts: tuple[str, ...] = ("float16",),
) -> torch.Tensor | None:
    def call(inputs: object) -> list[torch.Tensor]:
        assert isinstance(inputs, dict)
        return [reference(inputs["x"])]

    truths = call({"x": x}) if truth is None else [truth]
    return measure_noise(
        call,
        {"x": x},
        truths,
        casts=lambda: casts,
        generator=torch.Generator().manual_seed(1),
        has_oracle=has_oracle,
    )[0]


def noise(reference: Reference, x: torch.Tensor, bound: float = 1e-3) -> torch.Tensor:
    changes = changes_of(reference, x)
    assert changes is not None
    return noise_of(changes, torch.full(x.shape, bound, dtype=torch.float64), Tolerance(rtol=1e-3))


def test_the_noise_is_about_the_rounding_error() -> None:
    x = torch.randn(200, 100, generator=torch.Generator().manual_seed(2))
    error = (x.half().float() ** 3 - x**3).double().square().mean().sqrt()
    measured = noise(lambda values: values.half().float() ** 3, x).square().mean().sqrt()
    assert 0.8 < float(measured / error) < 2.5


def test_a_reference_that_does_not_round_has_hardly_any_noise() -> None:
    """Inputs move by a unit of float16, as after a cast to it."""
    x = torch.randn(50, 100, generator=torch.Generator().manual_seed(2))
    assert float(noise(lambda values: values**3, x, bound=1e-3).median()) < 1e-5


def test_one_noisy_element_does_not_hide_the_errors_of_its_row() -> None:
    x = torch.full((8, 100), 1.0)
    x[:, 7] = 1e6

    def reference(values: torch.Tensor) -> torch.Tensor:
        return torch.where(values > 1e3, values.half().float().clamp(max=6e4) + values.bfloat16(), values)

    quiet = noise(reference, x)[:, [column for column in range(100) if column != 7]]
    assert float(quiet.max()) < 0.5e-3


@pytest.mark.parametrize(
    "reference", [lambda values: values.round().int(), lambda values: values > 0.5], ids=["int32", "bool"]
)
def test_only_integers_of_eight_bits_have_noise(reference: Reference) -> None:
    x = torch.full((4, 8), 0.5)
    assert changes_of(reference, x) is None
    changes = changes_of(lambda values: values.add(1.0).round().to(torch.int8), x)
    assert changes is not None
    assert bool(changes.any())


def test_a_reference_that_does_not_repeat_itself_has_no_noise() -> None:
    x = torch.ones(4, 8)
    assert changes_of(lambda values: values.half().float(), x, truth=x + 1e-6) is None


def test_a_level_may_differ_where_the_largest_of_each_row_is_cut_off() -> None:
    """`x / (x / 127)` is 127 or 126.99, and a few moves do not show both for each row."""
    x = torch.randn(500, 64, generator=torch.Generator().manual_seed(3))

    def reference(values: torch.Tensor) -> torch.Tensor:
        return (values / (values.abs().amax(dim=1, keepdim=True) / 127)).to(torch.int8)

    multiplied = (x * (127 / x.abs().amax(dim=1, keepdim=True))).to(torch.int8)
    for has_oracle in (False, True):
        changes = changes_of(reference, x, has_oracle=has_oracle, casts=())
        assert changes is not None
        differing, open_levels = multiplied != reference(x), changes.any(dim=0)
        assert int(differing.sum()) > 50
        assert not bool((differing & ~open_levels).any())
        assert float(open_levels.double().mean()) < 0.03


def test_floats_have_no_noise_beside_an_oracle() -> None:
    assert changes_of(lambda values: values.half().float(), torch.ones(4, 8), has_oracle=True) is None

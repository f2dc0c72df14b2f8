"""How far a right output may be from the exact one: a measure that comes from the reference alone.

`spread` is, for each element, the error of careful arithmetic: the rounding of the output, and the root mean square of a few
calls of the reference with random rounding errors (`arithmetic.Careful`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from harness.worker.oracle.arithmetic import EPS

from .bounds import overflow, spacing

CALLS = 8
MOST, MOST_RARE, RARE = 6.0, 24.0, 10_000
"""Largest right error in units of `spread`; and that of one element in so many."""
MOST_MEAN, FEW = 2.5, 3.5
"""Largest right root mean square of these units; n elements may have FEW / sqrt(n) more."""
MOST_BIAS, MOST_BIAS_SINGLE = 0.15, 4.0
"""Largest right common factor of all errors: in units of the output's dtype, and of float32, whose rounding of a row's mean
or maximum all elements of the row have in common. Twice the bias of the reference's own calls is added."""
_ROUNDING = 12.0**-0.5
"""Root mean square of a rounding error, in units in the last place."""


@dataclass(frozen=True, slots=True)
class Measure:
    """The measure of one output of one call."""

    spread: torch.Tensor
    bias: float
    """Largest right bias."""
    overflowed: torch.Tensor
    """Elements that the reference does not compute in its own dtype, because it overflows there."""

    def shares(self, error: torch.Tensor, truth: torch.Tensor) -> tuple[torch.Tensor, dict[str, float]]:
        """Return the units of each error, and the used shares of the measure; above 1 is wrong.

        Errors and exact values are finite and flat.
        """
        if not error.numel():
            return error, {}
        units = error.abs() / self.spread
        rare = error.numel() // RARE
        worst = units.topk(rare + 1).values
        mean = float(units.square().mean().sqrt()) / (MOST_MEAN + FEW / error.numel() ** 0.5)
        shares = {"worst": max(float(worst[-1]) / MOST, float(worst[0]) / MOST_RARE * bool(rare)), "rms": mean}
        return units, shares | {"bias": abs(bias_of(error, truth)) / self.bias}


def bias_of(error: torch.Tensor, truth: torch.Tensor) -> float:
    """Return the factor of the exact values that fits the errors best."""
    square = float(truth.square().sum())
    return float((error * truth).sum()) / square if square else 0.0


def measure_output(truth: torch.Tensor, calls: Iterable[torch.Tensor], dtype: torch.dtype) -> Measure:
    """Return the measure of an output of `dtype` from its exact values and from careful calls."""
    finite = truth.isfinite() & (truth.abs() < overflow(dtype))
    squares, counts = torch.zeros_like(truth), torch.zeros_like(truth)
    biases, rounded = [], (truth.to(dtype).double() - truth)[finite]
    for call in calls:
        error = call.double() - truth
        known = error.isfinite() & finite
        squares += torch.where(known, error, 0.0).square()
        counts += known
        biases.append(bias_of(error[known], truth[known]))
    rounding = _ROUNDING * spacing(truth, dtype)
    spread = (rounding.square() + squares / counts.clamp(min=1)).sqrt()
    own = max(sum(bias**2 for bias in biases) / max(1, len(biases)), bias_of(rounded, truth[finite]) ** 2) ** 0.5
    bias = MOST_BIAS * torch.finfo(dtype).eps + MOST_BIAS_SINGLE * EPS + 2 * own
    return Measure(spread, bias, finite & (counts == 0))

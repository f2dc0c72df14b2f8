"""How far a right output may be from the exact one: a measure that comes from the reference alone.

`careful_error` is, for each element, the error of careful arithmetic: the rounding of the output, and the root mean square of
a few calls of the reference with random rounding errors (`arithmetic.Careful`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from harness.worker.oracle.arithmetic import EPS

from .bounds import overflow, spacing

CALLS = 8
MORE_CALLS = 32
"""Eight calls show the error of one element in a few thousand at half its size."""
CALLS_FOR_LEVELS = 24
"""For outputs of integers: a value half-way between two levels rounds to either in half of the calls."""
LEVEL_EPS = 8 * EPS
"""Operands move by this much in these calls: a quotient of rounded operands is three units off in one kernel of many."""
MOST, MOST_RARE, RARE, FEWEST_RARE = 6.0, 24.0, 10_000, 100
"""Largest right error in units of `careful_error`; of one element in so many, and of one of fewer elements down to the last."""
MOST_MEAN, FEW = 2.5, 3.5
"""Largest right root mean square of these units; n elements may have FEW / sqrt(n) more."""
MOST_BIAS, MOST_BIAS_SINGLE = 0.15, 8.0
"""Largest right bias, a common factor of all errors: in units of the output's dtype, and of float32, because all elements of
a row have the rounding error of its mean or maximum in common. Twice the bias of the reference's own calls is added."""
APPROXIMATE = 2.0
"""Factor of `careful_error` in float32: exponentials, roots and quotients of GPUs are off by a unit or two."""
_ROUNDING = 12.0**-0.5
"""Root mean square of a rounding error, in units in the last place."""


@dataclass(frozen=True, slots=True)
class ErrorMeasure:
    """The measure of one output of one call."""

    careful_error: torch.Tensor
    bias: float
    """Largest right bias."""
    open: torch.Tensor
    """Elements with two right values: where the reference overflows in its own dtype, not finite ones too; an integer that
    changes between its calls may differ by 1."""

    def shares(self, error: torch.Tensor, truth: torch.Tensor, at: torch.Tensor) -> dict[str, float]:
        """Return the used shares of the measure; above 1 is wrong. `at`: elements where both tensors are finite."""
        if not bool(at.any()):
            return {}
        errors, truths, units = error[at], truth[at], error[at].abs() / self.careful_error[at]
        rare = max(units.numel() // RARE, int(units.numel() >= FEWEST_RARE))
        worst = units.topk(rare + 1).values
        return {
            "elementwise": max(float(worst[-1]) / MOST, float(worst[0]) / MOST_RARE * bool(rare)),
            "rms": float(units.square().mean().sqrt()) / (MOST_MEAN + FEW / units.numel() ** 0.5),
            "bias": abs(bias_of(errors, truths)) / self.bias,
        }

    def describe(self, error: torch.Tensor, truth: torch.Tensor, at: torch.Tensor) -> str:
        """Return how far the output is off, and how far careful arithmetic is, in words.

        Such as `0.98 % off the exact values (rms); careful arithmetic is 0.02 % off`.
        """
        shares = self.shares(error, truth, at)
        errors, truths, careful_error = error[at], truth[at], self.careful_error[at]
        if max(shares["rms"], shares["elementwise"]) <= 1:
            bias = bias_of(errors, truths)
            words = f"the values are {_percent(bias)} too {'large' if bias > 0 else 'small'} on average"
            return f"{words}; careful arithmetic at most {_percent(self.bias)}"
        lead, of = "", "the exact values (rms)"
        if shares["rms"] <= 1:  # few elements are wrong: the worst one says more than the mean of all
            worst = (errors.abs() / careful_error).topk(1).indices
            lead, of, errors, truths, careful_error = (
                "an element is ",
                "its exact value",
                errors[worst],
                truths[worst],
                careful_error[worst],
            )
        size = float(truths.norm()) or 1.0
        off, careful = float(errors.norm()) / size, float(careful_error.norm()) / size
        return f"{lead}{_percent(off)} off {of}; careful arithmetic is {_percent(careful)} off"


def bias_of(error: torch.Tensor, truth: torch.Tensor) -> float:
    """Return the factor of the exact values that fits the errors best."""
    square = float(truth.square().sum())
    return float((error * truth).sum()) / square if square else 0.0


def measure_output(truth: torch.Tensor, calls: Sequence[torch.Tensor], dtype: torch.dtype) -> ErrorMeasure:
    """Return the measure of an output of `dtype` from its exact values and from careful calls."""
    if not dtype.is_floating_point:
        changed = [call.to(torch.int64) != truth.to(torch.int64) for call in calls]
        changes = torch.stack(changed).any(dim=0) if changed else torch.zeros_like(truth, dtype=torch.bool)
        return ErrorMeasure(changes, 0.0, changes)
    finite = truth.isfinite() & (truth.abs() < overflow(dtype))
    squares, counts = torch.zeros_like(truth), torch.zeros_like(truth)
    rounded = (truth.to(dtype).double() - truth)[finite]
    biases = [bias_of(rounded, truth[finite])]
    for call in calls:
        error = call.double() - truth
        both = error.isfinite() & finite
        squares += torch.where(both, error, 0.0).square()
        counts += both
        biases.append(bias_of(error[both], truth[both]))
    rounding = _ROUNDING * spacing(truth, dtype)
    careful_error = (rounding.square() + squares / counts.clamp(min=1)).sqrt()
    careful_error = careful_error * APPROXIMATE if dtype.itemsize >= torch.float32.itemsize else careful_error
    own = max(abs(biases[0]), (sum(bias**2 for bias in biases[1:]) / max(1, len(calls))) ** 0.5)
    bias = MOST_BIAS * torch.finfo(dtype).eps + MOST_BIAS_SINGLE * EPS + 2 * own
    return ErrorMeasure(careful_error, bias, finite & (counts < len(calls)))


def _percent(share: float) -> str:
    return f"{100 * abs(share):.2g} %"

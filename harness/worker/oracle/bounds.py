"""How far an element may be off: a task's tolerance worked out for one output of one case."""

from __future__ import annotations

import math

import torch

from suites.task import Tolerance

FLOAT32_ROUNDING = 2.0**-24
"""Largest relative error of one rounding to float32: half the distance from 1 to the next value."""
TF32_ALLOWANCE = 4 * 2.0**-10
"""Of the output's root mean square. TF32 keeps 10 bits and matrix units truncate to them: an operand is off by at most
2**-10 of itself, in random products by half of that in the mean, which leaves the worst of many elements below 4."""

_EIGHT_BITS: dict[torch.dtype, tuple[int, int]] = {
    torch.float8_e4m3fn: (3, -6),
    torch.float8_e4m3fnuz: (3, -7),
    torch.float8_e5m2: (2, -14),
    torch.float8_e5m2fnuz: (2, -15),
}
"""Stored bits of the significand and the exponent of the smallest normal value; `torch.finfo` has them wrong (2.13)."""


def terms_of(tolerance: Tolerance, sizes: dict[str, int]) -> int:
    """Length of the reduction at these sizes; 1 where the tolerance names none."""
    return sizes.get(tolerance.reduction, 1)


def allowed(
    expected: torch.Tensor, dtype: torch.dtype, tolerance: Tolerance, *, terms: int = 1, tf32: bool = False
) -> torch.Tensor:
    """For each element of `expected` (float64) the largest |got - expected| that is right; what it means: `Tolerance`."""
    bound = tolerance.atol + tolerance.rtol * expected.abs()
    if tolerance.ulps:
        bound = bound + tolerance.ulps * spacing(expected, dtype)
    spread = tolerance.accumulation * FLOAT32_ROUNDING * terms**0.5
    if tolerance.tf32 and tf32:
        spread += TF32_ALLOWANCE
    if spread:
        finite = expected[expected.isfinite()]
        if finite.numel():
            bound = bound + spread * finite.square().mean().sqrt()
    return bound


def spacing(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Distance between neighbouring values of `dtype` around each of `values` (float64), subnormal ones included."""
    bits, lowest = _format(dtype)
    exponent = torch.frexp(values.abs())[1] - 1
    exponent = torch.where((values == 0) | ~values.isfinite(), lowest, exponent.clamp(min=lowest))
    return torch.ldexp(torch.ones_like(values), exponent - bits)


def overflow(dtype: torch.dtype) -> float:
    """Magnitude from which on rounding to nearest gives infinity (or, where there is none, what stands for it)."""
    if dtype == torch.float64:
        return math.inf
    largest = float(torch.finfo(dtype).max)
    return largest + 0.5 * float(spacing(torch.tensor([largest], dtype=torch.float64), dtype))


def _format(dtype: torch.dtype) -> tuple[int, int]:
    """Stored bits of the significand, and the exponent of the smallest normal value."""
    if dtype in _EIGHT_BITS:
        return _EIGHT_BITS[dtype]
    facts = torch.finfo(dtype)
    return -round(math.log2(facts.eps)), round(math.log2(facts.smallest_normal))

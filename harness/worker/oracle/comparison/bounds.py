"""The largest error that is right for each element: a task's tolerance, computed for one output of one case.

For outputs of 8-bit floats with their scale as another output, the kernel's own scale sets their step. Kernels choose scales
differently: 224 or 448 as the largest value, or a power of two. Scale times value must be right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import torch

from harness.worker.kit.arena import Value
from suites.task import Tolerance

FLOAT32_ROUNDING = 2.0**-24
"""Largest relative error of one rounding to float32: half the distance from 1 to the next value."""
TF32_ALLOWANCE = 4 * 2.0**-10
"""Share of the output's root mean square. TF32 keeps 10 bits and matrix units truncate: an operand is off by at most 2**-10
of itself, on average by half of that. In random products the worst of many elements stays below 4 of these."""

_EIGHT_BITS: dict[torch.dtype, tuple[int, int]] = {
    torch.float8_e4m3fn: (3, -6),
    torch.float8_e4m3fnuz: (3, -7),
    torch.float8_e5m2: (2, -14),
    torch.float8_e5m2fnuz: (2, -15),
}
"""Stored significand bits, and exponent of the smallest normal value; `torch.finfo` of torch 2.13 has wrong values."""
MOST_FACTOR = 2.0
"""A kernel's scale is at most this many times the reference's, and at least its inverse: a power of two may be the next one."""
SLACK = 1 + 2.0**-10
"""Factor for rounding errors of a scale."""


def terms_of(tolerance: Tolerance, sizes: dict[str, int]) -> int:
    """Return the length of the tolerance's reduction at these sizes; 1 if it names none."""
    return sizes.get(tolerance.reduction, 1)


def allowed(
    expected: torch.Tensor,
    dtype: torch.dtype,
    tolerance: Tolerance,
    *,
    terms: int = 1,
    tf32: bool = False,
    inputs: Iterable[Value] = (),
) -> torch.Tensor:
    """Return the largest right |got - expected| for each element of `expected` (float64). Formula: `Tolerance`.

    `inputs` give the scale if all of `expected` is 0.
    """
    bound = tolerance.atol + tolerance.rtol * expected.abs()
    if tolerance.ulps:
        bound = bound + tolerance.ulps * spacing(expected, dtype)
    if tolerance.scale:
        sizes = _sizes(expected)
        if not expected.any():
            floats = [
                value for value in inputs if isinstance(value, torch.Tensor) and value.is_floating_point()
            ]
            sizes = torch.cat([sizes, *map(_sizes, floats)])
        if sizes.numel():
            bound = bound + tolerance.scale * sizes.median()
    allowance = tolerance.accumulation * FLOAT32_ROUNDING * terms**0.5
    if tolerance.tf32 and tf32:
        allowance += TF32_ALLOWANCE
    if allowance:
        finite = expected[expected.isfinite()]
        if finite.numel():
            bound = bound + allowance * finite.square().mean().sqrt()
    return bound


def _sizes(values: torch.Tensor) -> torch.Tensor:
    wide = values.double().flatten()
    return wide[wide.isfinite() & (wide != 0)].abs()


def spacing(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the distance between neighbouring values of `dtype` at each of `values` (float64), subnormals included."""
    bits, lowest = _format(dtype)
    exponent = torch.frexp(values.abs())[1] - 1
    exponent = torch.where((values == 0) | ~values.isfinite(), lowest, exponent.clamp(min=lowest))
    return torch.ldexp(torch.ones_like(values), exponent - bits)


def overflow(dtype: torch.dtype) -> float:
    """Return the smallest magnitude that rounds to infinity, or to NaN in a dtype without infinities."""
    if dtype == torch.float64:
        return math.inf
    largest = float(torch.finfo(dtype).max)
    return largest + 0.5 * float(spacing(torch.tensor([largest], dtype=torch.float64), dtype))


def _format(dtype: torch.dtype) -> tuple[int, int]:
    if dtype in _EIGHT_BITS:
        return _EIGHT_BITS[dtype]
    facts = torch.finfo(dtype)
    return -round(math.log2(facts.eps)), round(math.log2(facts.smallest_normal))


def scale_pairs(
    expected: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
) -> Iterator[tuple[int, int]]:
    """Yield the numbers of each output of 8-bit floats and of its scale: both kinds in their order, if they are equally many."""
    floats = [number for number, output in enumerate(outputs) if output.is_floating_point()]
    if all(output.shape == truth.shape for output, truth in zip(outputs, expected, strict=True)):
        quantized = [number for number in floats if outputs[number].itemsize == 1]
        scales = [number for number in floats if outputs[number].dtype is torch.float32]
        if len(quantized) == len(scales):
            yield from zip(quantized, scales, strict=True)


def scale_factor(
    truth: torch.Tensor, right_scale: torch.Tensor, got: torch.Tensor, scale: torch.Tensor
) -> torch.Tensor | None:
    """Return the kernel's scale divided by the reference's for each quantized element.

    `None` if it is no scale of these elements, if it is too far from the reference's, or if a value does not fit into the dtype.
    """
    factor = _expanded(scale.double() / right_scale.double(), tuple(truth.shape))
    if factor is None or not factor.numel():
        return None
    limit = MOST_FACTOR * SLACK
    is_near = bool(((factor <= limit) & (factor >= 1 / limit)).all())
    fits = bool(((truth / factor).abs() <= torch.finfo(got.dtype).max * SLACK).all())
    return factor if is_near and fits else None


def _expanded(scale: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor | None:
    """Return the scale of each element: one in all, one for each row, or one for each group or block."""
    if scale.numel() == 1:
        return scale.reshape(()).expand(shape)
    if scale.dim() == len(shape) - 1:
        scale = scale.unsqueeze(-1)
    if scale.dim() != len(shape) or (scale.numel() == math.prod(shape) and scale.shape[-1] > 1):
        return None  # of elements, not of rows or groups
    if any(size % parts for size, parts in zip(shape, scale.shape, strict=True)):
        return None
    for axis, size in enumerate(shape):
        scale = scale.repeat_interleave(size // scale.shape[axis], axis)
    return scale

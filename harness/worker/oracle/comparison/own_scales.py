"""Outputs of 8-bit floats with their scale as another output: the kernel's own scale sets their step.

Kernels choose scales differently: 224 or 448 as the largest value, or a power of two. Scale times value must be right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

MOST_FACTOR = 2.0
"""A kernel's scale is at most this many times the reference's, and at least its inverse: a power of two may be the next one."""
SLACK = 1 + 2.0**-10
"""Factor for rounding errors of a scale."""


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

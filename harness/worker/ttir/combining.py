"""Reductions and scans along an axis, by the function in their region."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
Combine = Callable[[tuple[Array, ...], tuple[Array, ...]], tuple[Array, ...]]
"""Of two elements of each operand, or of arrays of them."""


def reduced(combine: Combine, values: tuple[Array, ...], axis: int, *, neighbours: bool) -> tuple[Array, ...]:
    """One element of each operand along the axis: of halves combined with halves or of neighbours with neighbours, as on devices."""
    parts = tuple(np.moveaxis(value, axis, 0) for value in values)
    while (size := parts[0].shape[0]) > 1:
        half = size // 2
        if neighbours:
            parts = combine(tuple(part[::2] for part in parts), tuple(part[1::2] for part in parts))
        else:
            parts = combine(tuple(part[:half] for part in parts), tuple(part[half:] for part in parts))
    return tuple(part[0] for part in parts)


def scanned(combine: Combine, values: tuple[Array, ...], axis: int, *, backwards: bool) -> tuple[Array, ...]:
    """All elements before and with each one combined, in steps that double."""
    parts = [np.moveaxis(value, axis, 0) for value in values]
    if backwards:
        parts = [part[::-1] for part in parts]
    size, step = parts[0].shape[0], 1
    while step < size:
        further = combine(tuple(part[:-step] for part in parts), tuple(part[step:] for part in parts))
        parts = [
            np.concatenate((part[:step], np.broadcast_to(more, part[step:].shape)))
            for part, more in zip(parts, further, strict=True)
        ]
        step *= 2
    if backwards:
        parts = [part[::-1] for part in parts]
    return tuple(np.moveaxis(part, 0, axis) for part in parts)

"""Operations that put elements elsewhere and compute nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .kinds import kind_of
from .text import Operation

Array = Any


def shaping(operation: Operation) -> Callable[..., Any] | None:
    """The function of an operation; `None` for one of another sort. That of `tt.split` gives two values."""
    shape = _shape(operation)
    match operation.name:
        case "tt.splat":
            return lambda value: np.full(shape, value, dtype=np.asarray(value).dtype)
        case "tt.broadcast":
            return lambda value: np.broadcast_to(value, shape)
        case "tt.expand_dims":
            axis = operation.number("axis")
            return lambda value: np.expand_dims(value, axis)
        case "tt.reshape" | "tt.unsplat":
            return lambda value: np.reshape(value, shape)
        case "tt.trans":
            order = operation.numbers("order")
            return lambda value: np.transpose(value, order)
        case "tt.make_range":
            values = np.arange(operation.number("start"), operation.number("end"), dtype=np.int32)
            return lambda: values
        case "tt.join":
            return lambda a, b: np.stack((a, b), axis=-1)
        case "tt.split":
            return lambda value: (value[..., 0], value[..., 1])
        case "tt.cat":
            return lambda a, b: np.concatenate((a, b))
        case "tt.gather":
            axis = operation.number("axis")
            return lambda source, at: np.take_along_axis(source, _inside(at, source.shape[axis]), axis)
        case "tt.histogram":
            return lambda *given: _histogram(shape[0], *given)
        case _:
            return None


def _shape(operation: Operation) -> tuple[int, ...]:
    return kind_of(operation.result_kinds[0]).shape if operation.result_kinds else ()


def _inside(at: Array, size: int) -> Array:
    """What is beyond has no value."""
    return np.clip(at, 0, size - 1).astype(np.int64)


def _histogram(bins: int, values: Array, mask: Array | None = None) -> Array:
    kept = values[mask] if mask is not None else values
    kept = kept[(kept >= 0) & (kept < bins)]
    return np.bincount(kept.ravel(), minlength=bins).astype(np.int32)

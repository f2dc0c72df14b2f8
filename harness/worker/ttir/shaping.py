"""Operations that put elements elsewhere and compute nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .kinds import kind_of
from .text import Operation
from .together import Apart, alike, leading, rank, spread

Array = Any


def shaping(operation: Operation) -> Callable[..., Any] | None:
    """The function of an operation; `None` for one of another sort. That of `tt.split` gives two values."""
    shape = _shape(operation)
    match operation.name:
        case "tt.splat":
            return lambda value: _splat(value, shape)
        case "tt.broadcast":
            return lambda value: np.broadcast_to(value, (*leading(value, len(shape)), *shape))
        case "tt.expand_dims":
            axis = operation.number("axis") - len(shape)
            return lambda value: np.expand_dims(value, axis)
        case "tt.reshape" | "tt.unsplat":
            given = rank(operation.operand_kinds[0])
            return lambda value: np.reshape(value, (*leading(value, given), *shape))
        case "tt.trans":
            order = [axis - len(shape) for axis in operation.numbers("order")]
            return lambda value: np.transpose(value, (*range(np.ndim(value) - len(shape)), *order))
        case "tt.make_range":
            values = np.arange(operation.number("start"), operation.number("end"), dtype=np.int32)
            return lambda: values
        case "tt.join":
            given = rank(operation.operand_kinds[0])
            return lambda a, b: np.stack(alike((a, b), given), axis=-1)
        case "tt.split":
            return lambda value: (value[..., 0], value[..., 1])
        case "tt.cat":
            return lambda a, b: np.concatenate(alike((a, b), len(shape)), axis=-len(shape))
        case "tt.gather":
            axis = operation.number("axis") - len(shape)
            return lambda source, at: _gathered(alike((source, at), len(shape)), axis)
        case "tt.histogram":
            given = rank(operation.operand_kinds[0])
            return lambda *values: _histogram(shape[0], given, *values)
        case _:
            return None


def _shape(operation: Operation) -> tuple[int, ...]:
    return kind_of(operation.result_kinds[0]).shape if operation.result_kinds else ()


def _splat(value: Array, shape: tuple[int, ...]) -> Array:
    programs = leading(value, 0)
    if not programs:
        return np.full(shape, value, dtype=np.asarray(value).dtype)
    return np.broadcast_to(spread(value, len(shape)), (*programs, *shape))


def _gathered(given: tuple[Array, ...], axis: int) -> Array:
    """What is beyond has no value."""
    source, at = given
    return np.take_along_axis(source, np.clip(at, 0, source.shape[axis] - 1).astype(np.int64), axis)


def _histogram(bins: int, dimensions: int, values: Array, mask: Array | None = None) -> Array:
    if leading(values, dimensions) or (mask is not None and leading(mask, dimensions)):
        raise Apart
    kept = values[mask] if mask is not None else values
    kept = kept[(kept >= 0) & (kept < bins)]
    return np.bincount(kept.ravel(), minlength=bins).astype(np.int32)

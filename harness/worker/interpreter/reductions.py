"""
Reductions and scans of Triton's interpreter with any combine function, on whole arrays.

Triton's own go element by element, minutes for a `tl.flip` or `tl.sort` of a small tensor. Here neighbours are combined
pairwise, in order, in as many steps as the axis has halvings, which is what a device may do too: the combine function
must be associative and need not commute; replays that run programs backwards set other brackets, where one that is not
shows. Serves Triton 3.6 and 3.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray
from triton.runtime import interpreter

from .observing import is_backwards

Array = NDArray[Any]

RUN = 4
"""Elements in a row that a device's thread may hold."""


def install() -> None:
    """Take the place of the interpreter's general reduction and scan; its fast special cases stay."""
    interpreter.ReduceOps.generic_reduce = _reduce
    interpreter.ScanOps.generic_scan = _scan


def _reduce(self: Any, operands: Sequence[Any]) -> list[Any]:
    dtypes = [operand.dtype for operand in operands]
    arrays = [operand.handle.data for operand in operands]
    axis = self.axis
    rank = arrays[0].ndim
    if axis is None:
        arrays, axis = [array.reshape(-1) for array in arrays], 0
    parts = [np.moveaxis(array, axis, 0) for array in arrays]
    if is_backwards():
        parts = _folded(self, parts, dtypes)
    while len(parts[0]) > 1:
        paired = len(parts[0]) // 2 * 2
        left, right = [part[0:paired:2] for part in parts], [part[1:paired:2] for part in parts]
        rest = [part[paired:] for part in parts]
        combined = _combine(self, left, right, dtypes)
        parts = [np.concatenate([new, odd]) for new, odd in zip(combined, rest, strict=True)]
    results = [part[0] for part in parts]
    if self.keep_dims:
        shape = (1,) * rank if self.axis is None else None
        results = [
            result.reshape(shape) if shape is not None else np.expand_dims(result, axis) for result in results
        ]
    return [self.to_tensor(result, dtype) for result, dtype in zip(results, dtypes, strict=True)]


def _folded(self: Any, parts: list[Array], dtypes: Sequence[Any]) -> list[Array]:
    """Groups of `RUN` neighbours combined one after the other: other brackets than pairs', which must make no difference."""
    if len(parts[0]) % RUN:
        return parts
    done = [part[::RUN] for part in parts]
    for at in range(1, RUN):
        done = _combine(self, done, [part[at::RUN] for part in parts], dtypes)
    return done


def _scan(self: Any, operands: Sequence[Any]) -> list[Any]:
    dtypes = [operand.dtype for operand in operands]
    parts = [np.moveaxis(operand.handle.data, self.axis, 0).copy() for operand in operands]
    length, reach = len(parts[0]), 1
    while reach < length:
        # Whole arrays, as Triton's shapes must be powers of two; what wraps around is dropped below.
        combined = _combine(self, [np.roll(part, reach, axis=0) for part in parts], parts, dtypes)
        parts = [
            np.concatenate([part[:reach], new[reach:]]) for part, new in zip(parts, combined, strict=True)
        ]
        reach *= 2
    return [
        self.to_tensor(np.moveaxis(part, 0, self.axis), dtype)
        for part, dtype in zip(parts, dtypes, strict=True)
    ]


def _combine(self: Any, left: Sequence[Array], right: Sequence[Array], dtypes: Sequence[Any]) -> list[Array]:
    """The combine function over arrays of one shape, whatever it is: it works element by element."""
    shape = left[0].shape
    flat = [
        self.to_tensor(np.ascontiguousarray(array).reshape(-1), dtype)
        for array, dtype in zip([*left, *right], [*dtypes, *dtypes], strict=True)
    ]
    result = self.combine_fn.fn(*flat)
    results = result if isinstance(result, tuple) else (result,)
    return [
        np.broadcast_to(_data(value), (flat[0].handle.data.size,)).astype(array.dtype).reshape(shape)
        for value, array in zip(results, left, strict=True)
    ]


def _data(value: Any) -> Array:
    if isinstance(value, tl.tensor):
        return np.asarray(value.handle.data)
    return np.asarray(getattr(value, "value", value))

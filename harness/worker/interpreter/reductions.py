"""
Reductions and scans of Triton's interpreter with any combine function, on whole arrays.

Triton's own go element by element, minutes for a `tl.flip` or `tl.sort` of a small tensor. Here neighbours are combined
pairwise, in order, in as many steps as the axis has halvings, which is what a device may do too: the combine function
must be associative. Serves Triton 3.6 and 3.7.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray
from triton.runtime import interpreter

from . import bfloat16

Array = NDArray[Any]

MOST_OF_A_WARP = 1024
"""Neighbours that one warp may hold at the most: 16 bytes in each of 64 lanes."""


def install() -> None:
    """Take the place of the interpreter's general reduction and scan; its fast special cases stay."""
    interpreter.ReduceOps.generic_reduce = _reduce
    interpreter.ScanOps.generic_scan = _scan
    interpreter.ReduceOps.sum = _sum
    interpreter.ScanOps.cumsum = _running(interpreter.ScanOps.cumsum, np.add)
    interpreter.ScanOps.cumprod = _running(interpreter.ScanOps.cumprod, np.multiply)


def is_across_warps(shape: Sequence[int], axis: int | None) -> bool:
    """Whether lanes of several warps have to meet to make such a value: along other axes each warp may have its own rows or columns."""
    if axis is None or math.prod(shape) == shape[axis]:
        return True
    return axis % len(shape) == len(shape) - 1 and shape[axis] > MOST_OF_A_WARP


def adder(dtype: Any) -> Callable[..., Array]:
    """What sums arrays of a dtype along an axis.

    Devices add up what is narrower than float32 in its own type and round each time, so that is done here too; float32 and
    wider are numpy's to add.
    """
    if not dtype.is_floating() or dtype.primitive_bitwidth >= 32:
        return np.sum
    return functools.partial(_added_up, _rounding(np.add, dtype))


def _added_up(
    add: Callable[..., Array],
    values: Array,
    axis: int | None = None,
    *,
    keepdims: bool = False,
) -> Array:
    parts = values.reshape(-1) if axis is None else np.moveaxis(values, axis, 0)
    total = np.asarray(_paired([parts], lambda left, right: [add(left[0], right[0])])[0][0])
    if not keepdims:
        return total
    return total.reshape((1,) * values.ndim) if axis is None else np.expand_dims(total, axis)


def _rounding(function: Any, dtype: Any) -> Callable[..., Array]:
    """The function with its results in the type, which numpy lacks where it is bfloat16."""
    if not dtype.is_bf16():
        return function  # type: ignore[no-any-return]
    return lambda left, right: bfloat16.rounded(function(left, right))


def _sum(self: Any, operand: Any) -> Any:
    data = operand.handle.data
    total = adder(operand.dtype)(data, axis=self.axis, keepdims=bool(self.keep_dims))
    return self.to_tensor(total, operand.dtype)


def _running(here: Callable[..., Any], function: Any) -> Callable[..., Any]:
    """Running sums or products of floats."""

    def scan(self: Any, operand: Any) -> Any:
        data, dtype = operand.handle.data, operand.dtype
        if not dtype.is_bf16():
            return here(self, operand)
        combine = _rounding(function, dtype)
        found = _doubled(
            [np.moveaxis(data, self.axis, 0).copy()], lambda left, right: [combine(left[0], right[0])]
        )[0]
        return [self.to_tensor(np.moveaxis(found, 0, self.axis), dtype)]

    return scan


def _reduce(self: Any, operands: Sequence[Any]) -> list[Any]:
    dtypes = [operand.dtype for operand in operands]
    arrays = [operand.handle.data for operand in operands]
    axis = self.axis
    rank = arrays[0].ndim
    if axis is None:
        arrays, axis = [array.reshape(-1) for array in arrays], 0
    parts = [np.moveaxis(array, axis, 0) for array in arrays]
    parts = _paired(parts, lambda left, right: _combine(self, left, right, dtypes))
    results = [part[0] for part in parts]
    if self.keep_dims:
        shape = (1,) * rank if self.axis is None else None
        results = [
            result.reshape(shape) if shape is not None else np.expand_dims(result, axis) for result in results
        ]
    return [self.to_tensor(result, dtype) for result, dtype in zip(results, dtypes, strict=True)]


def _paired(parts: list[Array], combine: Callable[..., list[Array]]) -> list[Array]:
    """All combined to one: neighbours, in order."""
    while len(parts[0]) > 1:
        paired = len(parts[0]) // 2 * 2
        left, right = [part[0:paired:2] for part in parts], [part[1:paired:2] for part in parts]
        rest = [part[paired:] for part in parts]
        combined = combine(left, right)
        parts = [np.concatenate([new, odd]) for new, odd in zip(combined, rest, strict=True)]
    return parts


def _scan(self: Any, operands: Sequence[Any]) -> list[Any]:
    dtypes = [operand.dtype for operand in operands]
    parts = [np.moveaxis(operand.handle.data, self.axis, 0).copy() for operand in operands]
    parts = _doubled(parts, lambda left, right: _combine(self, left, right, dtypes))
    return [
        self.to_tensor(np.moveaxis(part, 0, self.axis), dtype)
        for part, dtype in zip(parts, dtypes, strict=True)
    ]


def _doubled(parts: list[Array], combine: Callable[..., list[Array]]) -> list[Array]:
    """A scan along the first axis, by twice the reach each time."""
    length, reach = len(parts[0]), 1
    while reach < length:
        # Whole arrays, as Triton's shapes must be powers of two; what wraps around is dropped below.
        combined = combine([np.roll(part, reach, axis=0) for part in parts], parts)
        parts = [
            np.concatenate([part[:reach], new[reach:]]) for part, new in zip(parts, combined, strict=True)
        ]
        reach *= 2
    return parts


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

"""Reductions and scans of Triton's interpreter with any combine function, on whole arrays.

Triton's own go element by element: minutes for a `tl.flip` or `tl.sort` of a small tensor. Here neighbours are combined
pairwise and in order, halving the axis in each step. A device may do this too, so the combine function must be associative.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray
from triton.runtime import interpreter

from .float_conversions import bfloat16_rounded

Array = NDArray[Any]
Combine = Callable[[Sequence[Array], Sequence[Array]], list[Array]]


def install() -> None:
    """Replace the interpreter's general reduction and scan and its sums; its other fast special cases stay."""
    interpreter.ReduceOps.generic_reduce = _reduce
    interpreter.ScanOps.generic_scan = _scan
    interpreter.ReduceOps.sum = _sum
    interpreter.ScanOps.cumsum = _running(interpreter.ScanOps.cumsum, np.add)
    interpreter.ScanOps.cumprod = _running(interpreter.ScanOps.cumprod, np.multiply)


def adder(dtype: Any) -> Callable[..., Array]:
    """The function that sums along an axis as devices do.

    Floats narrower than float32 round after each addition. Integers wrap around: undefined lanes can be large.
    """
    if dtype.is_int():
        return functools.partial(np.sum, dtype=interpreter._get_np_dtype(dtype))
    if not dtype.is_floating() or dtype.primitive_bitwidth >= 32:
        return np.sum
    return functools.partial(_added_up, _rounding(np.add, dtype))


def _added_up(combine: Combine, values: Array, axis: int | None = None, *, keepdims: bool = False) -> Array:
    parts = values.reshape(-1) if axis is None else np.moveaxis(values, axis, 0)
    total = np.asarray(_paired([parts], combine)[0][0])
    if not keepdims:
        return total
    return total.reshape((1,) * values.ndim) if axis is None else np.expand_dims(total, axis)


def _rounding(function: Any, dtype: Any) -> Combine:
    """Combine with a numpy function; results are rounded to bfloat16 if this is the dtype."""
    if dtype.is_bf16():
        return lambda left, right: [bfloat16_rounded(function(left[0], right[0]))]
    return lambda left, right: [function(left[0], right[0])]


def _sum(self: Any, operand: Any) -> Any:
    total = adder(operand.dtype)(operand.handle.data, axis=self.axis, keepdims=bool(self.keep_dims))
    return self.to_tensor(total, operand.dtype)


def _running(own: Callable[..., Any], function: Any) -> Callable[..., Any]:
    """Running sums or products; only those of bfloat16 differ from the interpreter's own."""

    def scan(self: Any, operand: Any) -> Any:
        if not operand.dtype.is_bf16():
            return own(self, operand)
        return _scan_with(self, [operand], _rounding(function, operand.dtype))

    return scan


def _reduce(self: Any, operands: Sequence[Any]) -> list[Any]:
    dtypes = [operand.dtype for operand in operands]
    arrays = [operand.handle.data for operand in operands]
    axis = self.axis
    rank = arrays[0].ndim
    if axis is None:
        arrays, axis = [array.reshape(-1) for array in arrays], 0
    parts = _paired([np.moveaxis(array, axis, 0) for array in arrays], _combine(self, dtypes))
    results = [part[0] for part in parts]
    if self.keep_dims and self.axis is None:
        results = [result.reshape((1,) * rank) for result in results]
    elif self.keep_dims:
        results = [np.expand_dims(result, axis) for result in results]
    return [self.to_tensor(result, dtype) for result, dtype in zip(results, dtypes, strict=True)]


def _paired(parts: list[Array], combine: Combine) -> list[Array]:
    """Combine all elements along the first axis to one: neighbours, in order."""
    while len(parts[0]) > 1:
        paired = len(parts[0]) // 2 * 2
        combined = combine([part[0:paired:2] for part in parts], [part[1:paired:2] for part in parts])
        parts = [np.concatenate([new, part[paired:]]) for new, part in zip(combined, parts, strict=True)]
    return parts


def _scan(self: Any, operands: Sequence[Any]) -> list[Any]:
    return _scan_with(self, operands, _combine(self, [operand.dtype for operand in operands]))


def _scan_with(self: Any, operands: Sequence[Any], combine: Combine) -> list[Any]:
    """A scan along the axis that doubles its reach in each step."""
    parts = [np.moveaxis(operand.handle.data, self.axis, 0).copy() for operand in operands]
    reach = 1
    while reach < len(parts[0]):
        # Whole arrays, as Triton's shapes must be powers of two; elements that wrap around are dropped below.
        combined = combine([np.roll(part, reach, axis=0) for part in parts], parts)
        parts = [
            np.concatenate([part[:reach], new[reach:]]) for part, new in zip(parts, combined, strict=True)
        ]
        reach *= 2
    return [
        self.to_tensor(np.moveaxis(part, 0, self.axis), operand.dtype)
        for part, operand in zip(parts, operands, strict=True)
    ]


def _combine(self: Any, dtypes: Sequence[Any]) -> Combine:
    """The kernel's combine function over arrays of one shape, element by element."""

    def combine(left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
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

    return combine


def _data(value: Any) -> Array:
    if isinstance(value, tl.tensor):
        return np.asarray(value.handle.data)
    return np.asarray(getattr(value, "value", value))

# ruff: noqa: D102 -- methods and arguments are those of Triton's own classes
"""Reductions and scans of Triton's interpreter with any combine function, on whole arrays.

Triton's own go element by element: minutes for a `tl.flip` or `tl.sort` of a small tensor. Here neighbours are combined
pairwise and in order, halving the axis in each step. A device may do this too, so the combine function must be associative.
Triton's fast special cases stay, except sums and what rounds to bfloat16.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray
from triton.runtime import interpreter

from .arithmetic import is_bfloat16
from .float_conversions import bfloat16_rounded

Array = NDArray[Any]
Combine = Callable[[Sequence[Array], Sequence[Array]], list[Array]]


class _Combination(interpreter.ReduceScanOpInterface):  # type: ignore[misc]
    """Base of reductions and scans."""

    def apply(self, input: Any) -> Any:
        """Let the builder combine, so that a tape holds one operation."""
        tensors = input if isinstance(input, tuple) else (input,)
        self.check_tensor(tensors)
        handles, types = [tensor.handle for tensor in tensors], [tensor.type for tensor in tensors]
        combined = interpreter.interpreter_semantic.builder.create_combination(self, handles, types)
        parts = combined if isinstance(combined, tuple) else (combined,)
        results = tuple(tl.tensor(handle, handle.type) for handle in parts)
        return results if isinstance(input, tuple) else results[0]

    def to_tensor(self, ret: Any, dtype: Any) -> Any:
        return super().to_tensor(bfloat16_rounded(ret) if is_bfloat16(dtype) else ret, dtype)

    def combine(self, dtypes: Sequence[Any], left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
        """The results of the kernel's combine function for arrays of one shape, element by element."""
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


class Reduction(_Combination, interpreter.ReduceOps):  # type: ignore[misc]
    """A reduction along an axis, or of all elements."""

    def sum(self, input: Any) -> Any:
        """The sum as a device computes it.

        Floats narrower than float32 round after each addition. Integers wrap around: undefined lanes can be large.
        """
        dtype = input.dtype
        if dtype.is_floating() and dtype.primitive_bitwidth < 32:
            return self._reduce([input], _rounding(np.add, dtype))[0]
        whole = interpreter._get_np_dtype(dtype) if dtype.is_int() else None
        total = np.sum(input.handle.data, axis=self.axis, dtype=whole, keepdims=bool(self.keep_dims))
        return self.to_tensor(total, dtype)

    def generic_reduce(self, input: Sequence[Any]) -> list[Any]:
        return self._reduce(input, functools.partial(self.combine, [operand.dtype for operand in input]))

    def _reduce(self, operands: Sequence[Any], combine: Combine) -> list[Any]:
        """Combine all elements along the axis to one: neighbours, in order."""
        arrays, axis = [operand.handle.data for operand in operands], self.axis
        rank = arrays[0].ndim
        parts = [array.reshape(-1) if axis is None else np.moveaxis(array, axis, 0) for array in arrays]
        while len(parts[0]) > 1:
            paired = len(parts[0]) // 2 * 2
            combined = combine([part[0:paired:2] for part in parts], [part[1:paired:2] for part in parts])
            parts = [np.concatenate([new, part[paired:]]) for new, part in zip(combined, parts, strict=True)]
        results = [part[0] for part in parts]
        if self.keep_dims:
            axes = tuple(range(rank)) if axis is None else axis
            results = [np.expand_dims(result, axes) for result in results]
        return [
            self.to_tensor(result, operand.dtype) for result, operand in zip(results, operands, strict=True)
        ]


class Scan(_Combination, interpreter.ScanOps):  # type: ignore[misc]
    """The results of a reduction up to each element."""

    def cumsum(self, input: Any) -> Any:
        return self._rounded_scan(np.add, input) if is_bfloat16(input.dtype) else super().cumsum(input)

    def cumprod(self, input: Any) -> Any:
        return self._rounded_scan(np.multiply, input) if is_bfloat16(input.dtype) else super().cumprod(input)

    def generic_scan(self, input: Sequence[Any]) -> list[Any]:
        return self._scan(input, functools.partial(self.combine, [operand.dtype for operand in input]))

    def _rounded_scan(self, function: Any, operand: Any) -> list[Any]:
        return self._scan([operand], _rounding(function, operand.dtype))

    def _scan(self, operands: Sequence[Any], combine: Combine) -> list[Any]:
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


def _rounding(function: Any, dtype: Any) -> Combine:
    """Combine with a numpy function; results are rounded to bfloat16 if this is the dtype."""
    if is_bfloat16(dtype):
        return lambda left, right: [bfloat16_rounded(function(left[0], right[0]))]
    return lambda left, right: [function(left[0], right[0])]


def _data(value: Any) -> Array:
    if isinstance(value, tl.tensor):
        return np.asarray(value.handle.data)
    return np.asarray(getattr(value, "value", value))

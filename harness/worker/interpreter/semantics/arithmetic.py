"""Arithmetic that Triton's interpreter computes differently from a compiler.

Sums of single bits, splats of comparisons, maximum and minimum with NaN, clamping of NaN, the upper half of products of
negative integers, `tl.fma`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle


def install() -> None:
    """Once a process, before other modules wrap these methods."""
    builder = interpreter.InterpreterBuilder
    builder.create_maxnumf = lambda self, lhs, rhs: self.binary_op(lhs, rhs, np.fmax)
    builder.create_minnumf = lambda self, lhs, rhs: self.binary_op(lhs, rhs, np.fmin)
    builder.create_clampf = _clamp
    builder.create_add = lambda self, lhs, rhs: self.binary_op(lhs, rhs, _sum)
    builder.create_fma = _fma
    builder.create_umulhi = lambda self, lhs, rhs: self.binary_op(lhs, rhs, _upper_half)
    splat, unsplat = builder.create_splat, builder.create_unsplat
    builder.create_splat = lambda self, kind, value: splat(self, kind, _as_bit(value))
    builder.create_unsplat = lambda self, value: unsplat(self, _as_bit(value))


def _as_bit(value: Any) -> Any:
    """Return the result of a comparison with its own dtype: the interpreter gives it the dtype of the operands."""
    if value.data.dtype != np.bool_ or value.dtype.scalar.is_int1():
        return value
    return TensorHandle(value.data, tl.int1)


def _fma(_: Any, x: Any, y: Any, z: Any) -> Any:
    """`x * y + z`, rounded once; float64 rounds twice."""
    a, b, c = x.data, y.data, z.data
    dtype = np.result_type(a, b, c)
    if dtype in (np.float16, np.float32):
        a, b, c = (operand.astype(np.float64) for operand in (a, b, c))
    return TensorHandle(np.asarray(a * b + c).astype(dtype, copy=False), z.dtype.scalar)


def _clamp(_: Any, value: Any, low: Any, high: Any, propagate_nan: Any) -> Any:
    keeps_nan = propagate_nan == interpreter._ir.PROPAGATE_NAN.ALL
    clamped = np.fmin(np.fmax(value.data, low.data), high.data)
    return TensorHandle(np.where(np.isnan(value.data) & keeps_nan, value.data, clamped), value.dtype.scalar)


def _sum(lhs: Any, rhs: Any) -> Any:
    """The sum; single bits wrap modulo 2, as all integers wrap at their range."""
    return np.logical_xor(lhs, rhs) if np.result_type(lhs, rhs) == np.bool_ else np.add(lhs, rhs)


def _upper_half(lhs: Any, rhs: Any) -> Any:
    """The upper half of the product of the operands' bits as unsigned numbers."""
    dtype = lhs.dtype
    bits = dtype.itemsize * 8
    unsigned = np.dtype(f"uint{bits}")
    a, b = lhs.view(unsigned), rhs.view(unsigned)
    if bits < 64:
        wide = np.dtype(f"uint{2 * bits}")
        return ((a.astype(wide) * b.astype(wide)) >> wide.type(bits)).astype(unsigned).view(dtype)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_high, a_low, b_high, b_low = a >> half, a & low, b >> half, b & low
    middle = a_high * b_low + ((a_low * b_low) >> half)
    rest = a_low * b_high + (middle & low)
    return (a_high * b_high + (middle >> half) + (rest >> half)).view(dtype)

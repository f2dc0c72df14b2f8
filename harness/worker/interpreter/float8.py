"""
8-bit floats for Triton's interpreter (3.6 to 3.9), whose casts truncate and do not know the NaN of AMD's formats.

Values stay the 8 bits that memory holds. Kernels may cast them, multiply them with `tl.dot`, load, store and select them;
arithmetic on them is refused. Casts round to nearest even and saturate at the largest finite value, as a GPU's conversion
instructions do. An infinity saturates too: a kernel that wants another result has to handle it first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import triton.language as tl
from numpy.typing import NDArray
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

Bits = NDArray[np.uint8]


class Format:
    """Converts between the 8-bit codes of one format and numpy's floats."""

    def __init__(self, dtype: Any, *, nan: int) -> None:
        self._dtype, self._nan = np.dtype(dtype), nan
        # A table is four times as fast as ml_dtypes.
        self._values: NDArray[np.float32] = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
        self._values[nan] = np.nan
        self._largest = float(self._values[np.isfinite(self._values)].max())

    def decode(self, bits: NDArray[Any]) -> NDArray[np.float32]:
        """The values of the codes."""
        return self._values[bits.view(np.uint8)]

    def encode(self, values: NDArray[Any], *, to_zero: bool = False) -> Bits:
        """Codes of the nearest values (ties to even), or of the next values towards zero; values out of range saturate."""
        wide: NDArray[Any] = np.clip(values, -self._largest, self._largest)
        if wide.dtype == np.float64:
            wide = _rounded_to_odd(wide)
        near = wide.astype(self._dtype)
        if to_zero:
            grew = np.abs(self.decode(near)) > np.abs(wide)
            near = np.where(grew, np.nextafter(near, self._dtype.type(0)), near)
        codes: Bits = near.view(np.uint8)
        codes[np.isnan(wide)] = self._nan
        return codes


def _rounded_to_odd(wide: NDArray[np.float64]) -> NDArray[np.float32]:
    """float32 values that round to 8 bits as the float64 values do: ml_dtypes alone would round twice."""
    near = wide.astype(np.float32)
    near = np.where(np.abs(near) > np.abs(wide), np.nextafter(near, np.float32(0)), near)
    odd: NDArray[np.float32] = (near.view(np.uint32) | (near != wide)).view(np.float32)
    return odd


FORMATS = {
    "fp8e4nv": Format(ml_dtypes.float8_e4m3fn, nan=0x7F),
    "fp8e4b8": Format(ml_dtypes.float8_e4m3fnuz, nan=0x80),
    "fp8e5": Format(ml_dtypes.float8_e5m2, nan=0x7F),
    "fp8e5b16": Format(ml_dtypes.float8_e5m2fnuz, nan=0x80),
}
"""By Triton's names: OCP's e4m3fn and e5m2, and AMD's e4m3fnuz and e5m2fnuz."""

_ARITHMETIC = (
    *("binary_op", "unary_op", "create_fma", "create_fabs", "create_clampf"),
    *("create_atomic_rmw", "create_atomic_cas"),
)
_NO_ARITHMETIC = "the interpreter has no arithmetic on 8-bit floats ({name}), so this device cannot judge it; cast them first"


def install(cannot: Callable[[str], Exception]) -> None:
    """Replace the interpreter's casts and refuse arithmetic, after `bfloat16.install`. `cannot` makes the error."""
    _casts()
    _products()
    _refusals(cannot)


def _format(dtype: Any) -> Format | None:
    scalar = dtype.scalar
    return None if isinstance(scalar, tl.pointer_type) else FORMATS.get(scalar.name)


def _casts() -> None:
    builder = interpreter.InterpreterBuilder
    cast, fp_to_fp = builder.cast_impl, builder.create_fp_to_fp

    def convert(self: Any, src: Any, dst_type: Any, *, to_zero: bool = False) -> Any:
        source, target = _format(src.dtype), _format(dst_type)
        if source is not None:
            src = TensorHandle(source.decode(src.data), tl.float32)
        if target is not None:
            return TensorHandle(target.encode(src.data, to_zero=to_zero), dst_type.scalar)
        return src if dst_type.scalar == tl.float32 and source is not None else cast(self, src, dst_type)

    def create_fp_to_fp(self: Any, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        if _format(src.dtype) is None and _format(dst_type) is None:
            return fp_to_fp(self, src, dst_type, rounding_mode)
        return convert(self, src, dst_type, to_zero=rounding_mode == interpreter._ir.ROUNDING_MODE.RTZ)

    builder.cast_impl, builder.create_fp_to_fp = convert, create_fp_to_fp


def _products() -> None:
    builder = interpreter.InterpreterBuilder
    dot = builder.create_dot

    def widened(operand: Any) -> Any:
        source = _format(operand.dtype)
        return operand if source is None else TensorHandle(source.decode(operand.data), tl.float32)

    def create_dot(self: Any, a: Any, b: Any, d: Any, *rest: Any, **named: Any) -> Any:
        return dot(self, widened(a), widened(b), d, *rest, **named)

    builder.create_dot = create_dot


def _refusals(cannot: Callable[[str], Exception]) -> None:
    builder = interpreter.InterpreterBuilder

    def refusing(method: Callable[..., Any]) -> Callable[..., Any]:
        def checked(self: Any, *args: Any, **named: Any) -> Any:
            for arg in args:
                # The size is the cheaper test, so it comes first: this runs for every operation.
                if (
                    isinstance(arg, TensorHandle)
                    and arg.data.itemsize == 1
                    and _format(arg.dtype) is not None
                ):
                    raise cannot(_NO_ARITHMETIC.format(name=arg.dtype.scalar))
            return method(self, *args, **named)

        return checked

    for name in _ARITHMETIC:
        setattr(builder, name, refusing(getattr(builder, name)))
    to_tensor = interpreter.ReduceScanOpInterface.to_tensor

    def reduced(self: Any, value: Any, dtype: Any) -> Any:
        if _format(dtype) is not None:
            raise cannot(_NO_ARITHMETIC.format(name=dtype.scalar))
        return to_tensor(self, value, dtype)

    interpreter.ReduceScanOpInterface.to_tensor = reduced

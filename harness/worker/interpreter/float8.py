"""
8-bit floats in Triton's interpreter, whose own casts truncate (3.6 to 3.9) and know no NaN of AMD's formats.

Values stay the 8 bits that memory holds: kernels cast them, multiply them with `tl.dot`, load, store and select them, and
that is right here, bit for bit. Arithmetic on them is refused. Casts round to nearest even and saturate at the largest
finite value, as the conversion instructions of the GPUs do; what becomes of an infinity is for the kernel to say first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

Bits = NDArray[np.uint8]


class Format:
    """One 8-bit format, by its stored bits of the significand and its bias."""

    def __init__(self, bits: int, bias: int, *, largest: int, nan: int, negative_zero: bool) -> None:
        self._nan = nan
        self._negative_zero = negative_zero
        codes = np.arange(256)
        exponent, fraction = (codes & 0x7F) >> bits, (codes & 0x7F) & ((1 << bits) - 1)
        normal = np.ldexp(1.0 + fraction / (1 << bits), exponent - bias)
        subnormal = np.ldexp(fraction / (1 << bits), 1 - bias)
        values = np.where(exponent > 0, normal, subnormal)
        self.positive: NDArray[np.float64] = values[: largest + 1]
        """Finite values that are not negative, by their bits."""
        self._middles = (self.positive[:-1] + self.positive[1:]) / 2
        beyond = (codes & 0x7F) > largest
        infinite = beyond & (fraction == 0) & negative_zero & (bits == 2)
        values = np.where(infinite, np.inf, np.where(beyond, np.nan, values))
        values = np.where(codes >= 0x80, -values, values)
        if not negative_zero:
            values[0x80] = np.nan
        self._values = values.astype(np.float32)

    def decode(self, bits: Bits) -> NDArray[np.float32]:
        """The values that the bits stand for."""
        return self._values[bits.view(np.uint8)]

    def encode(self, values: NDArray[Any], *, to_zero: bool = False) -> Bits:
        """The bits of the nearest values, ties to even, or of the next towards zero; beyond the largest, the largest."""
        wide = np.asarray(values, dtype=np.float64)
        size = np.minimum(np.abs(wide), self.positive[-1])
        if to_zero:
            code = np.searchsorted(self.positive, size, side="right") - 1
        else:
            code = np.searchsorted(self._middles, size)
            tied = self._middles[np.minimum(code, len(self._middles) - 1)] == size
            code = code + (tied & (code % 2 == 1))
        negative = np.signbit(wide) & (self._negative_zero | (code > 0))
        return np.where(np.isnan(wide), self._nan, code | np.where(negative, 0x80, 0)).astype(np.uint8)


FORMATS = {
    "fp8e4nv": Format(3, 7, largest=0x7E, nan=0x7F, negative_zero=True),
    "fp8e4b8": Format(3, 8, largest=0x7F, nan=0x80, negative_zero=False),
    "fp8e5": Format(2, 15, largest=0x7B, nan=0x7F, negative_zero=True),
    "fp8e5b16": Format(2, 16, largest=0x7F, nan=0x80, negative_zero=False),
}
"""By Triton's names: OCP's e4m3fn and e5m2, and AMD's e4m3fnuz and e5m2fnuz."""


def install(cannot: Callable[[str], Exception]) -> None:
    """Teach the interpreter, after `bfloat16`; `cannot` makes the refusal of arithmetic on 8-bit floats."""
    _casts()
    _products()
    _refusals(cannot)


def _format(dtype: Any) -> Format | None:
    scalar = dtype.scalar
    return None if isinstance(scalar, tl.pointer_type) else FORMATS.get(scalar.name)


def _casts() -> None:
    builder = interpreter.InterpreterBuilder
    cast, fp_to_fp = builder.cast_impl, builder.create_fp_to_fp

    def converted(self: Any, src: Any, dst_type: Any, *, to_zero: bool = False) -> Any:
        origin, wanted = _format(src.dtype), _format(dst_type)
        if origin is not None:
            src = TensorHandle(origin.decode(src.data), tl.float32)
        if wanted is not None:
            return TensorHandle(wanted.encode(src.data, to_zero=to_zero), dst_type.scalar)
        return src if dst_type.scalar == tl.float32 else cast(self, src, dst_type)

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        if _format(src.dtype) is None and _format(dst_type) is None:
            return cast(self, src, dst_type)
        return converted(self, src, dst_type)

    def create_fp_to_fp(self: Any, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        if _format(src.dtype) is None and _format(dst_type) is None:
            return fp_to_fp(self, src, dst_type, rounding_mode)
        return converted(self, src, dst_type, to_zero=rounding_mode == interpreter._ir.ROUNDING_MODE.RTZ)

    builder.cast_impl, builder.create_fp_to_fp = cast_impl, create_fp_to_fp


def _products() -> None:
    builder = interpreter.InterpreterBuilder
    dot = builder.create_dot

    def create_dot(self: Any, a: Any, b: Any, d: Any, *rest: Any, **named: Any) -> Any:
        wide = []
        for operand in (a, b):
            known = _format(operand.dtype)
            wide.append(operand if known is None else TensorHandle(known.decode(operand.data), tl.float32))
        return dot(self, *wide, d, *rest, **named)

    builder.create_dot = create_dot


def _refusals(cannot: Callable[[str], Exception]) -> None:
    builder = interpreter.InterpreterBuilder
    why = "the interpreter has no arithmetic on 8-bit floats ({name}), so this device cannot judge it; cast them first"

    def refusing(method: Callable[..., Any]) -> Callable[..., Any]:
        def checked(self: Any, *args: Any, **named: Any) -> Any:
            for arg in args:
                # Their bytes are all that the interpreter has of them; names of types are asked for where there are single bytes.
                if (
                    isinstance(arg, TensorHandle)
                    and arg.data.itemsize == 1
                    and _format(arg.dtype) is not None
                ):
                    raise cannot(why.format(name=arg.dtype.scalar))
            return method(self, *args, **named)

        return checked

    for name in (
        "binary_op",
        "unary_op",
        "create_fma",
        "create_fabs",
        "create_clampf",
        "create_atomic_rmw",
        "create_atomic_cas",
    ):
        setattr(builder, name, refusing(getattr(builder, name)))
    to_tensor = interpreter.ReduceScanOpInterface.to_tensor

    def reduced(self: Any, value: Any, dtype: Any) -> Any:
        if _format(dtype) is not None:
            raise cannot(why.format(name=dtype.scalar))
        return to_tensor(self, value, dtype)

    interpreter.ReduceScanOpInterface.to_tensor = reduced

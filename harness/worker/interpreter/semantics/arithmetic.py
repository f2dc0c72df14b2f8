# ruff: noqa: D102 -- methods and arguments are those of Triton's own class
"""A builder that computes what a compiled kernel computes, where Triton's interpreter computes something else.

A bfloat16 value is kept as float32 and rounded to nearest even after each operation, as on a device; only memory holds 16
bits. An 8-bit value is kept as its bits. Kernels may cast 8-bit values, multiply them with `tl.dot`, load, store and select
them; arithmetic on them is refused. What the interpreter lacks is refused by name, so that it never counts as wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from harness.worker.interpreter.traffic import cannot, refusing

from . import libdevice
from .float_conversions import FLOAT8, bfloat16_bits, bfloat16_rounded, bfloat16_values

_NO_ARITHMETIC = "the interpreter has no arithmetic on 8-bit floats ({name}), so this device cannot judge it; cast them first"

narrowed: set[str] = set()
"""Names of the 16-bit floats to which kernels of this process cast wider ones."""


def is_bfloat16(dtype: Any) -> bool:
    """Whether a type or the elements of a block are bfloat16; false for pointers to bfloat16."""
    return bool(dtype.scalar.name == "bf16")


def refuse_float8(*operands: Any) -> None:
    """Raise `UnsupportedHere` if an operand holds 8-bit floats."""
    for operand in operands:
        # The size comes first, as the cheaper test: this runs for every operation.
        if operand.data.itemsize == 1 and operand.dtype.scalar.name in FLOAT8:
            raise cannot(_NO_ARITHMETIC.format(name=operand.dtype.scalar))


class Arithmetic(InterpreterBuilder):  # type: ignore[misc]
    """Triton's builder with the values of a compiled kernel; `WatchedBuilder` adds the accesses to memory."""

    create_inline_asm = staticmethod(refusing("inline_asm"))

    def __getattr__(self, name: str) -> Any:
        if not name.startswith(("create_", "get_")):
            raise AttributeError(name)
        return refusing(name.removeprefix("create_").removeprefix("get_"))

    def get_bf16(self, value: float) -> TensorHandle:
        return TensorHandle(bfloat16_rounded([value]), tl.bfloat16)

    def unary_op(self, arg: Any, op: Any) -> Any:
        refuse_float8(arg)
        return _rounded(super().unary_op(arg, op))

    def binary_op(self, lhs: Any, rhs: Any, op: Any) -> Any:
        refuse_float8(lhs, rhs)
        return _rounded(super().binary_op(lhs, rhs, op))

    def create_add(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, _sum)

    def create_maxnumf(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, np.fmax)

    def create_minnumf(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, np.fmin)

    def create_umulhi(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, _upper_half)

    def create_fabs(self, arg: Any) -> Any:
        refuse_float8(arg)
        return TensorHandle(np.abs(arg.data), arg.dtype.scalar)

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        """`x * y + z`, rounded once; float64 rounds twice."""
        refuse_float8(x, y, z)
        a, b, c = x.data, y.data, z.data
        dtype = np.result_type(a, b, c)
        if dtype in (np.float16, np.float32):
            a, b, c = (operand.astype(np.float64) for operand in (a, b, c))
        return _rounded(TensorHandle(np.asarray(a * b + c).astype(dtype, copy=False), z.dtype.scalar))

    def create_clampf(self, arg: Any, low: Any, high: Any, propagate_nan: Any) -> Any:
        refuse_float8(arg, low, high)
        keeps_nan = propagate_nan == interpreter._ir.PROPAGATE_NAN.ALL
        clamped = np.fmin(np.fmax(arg.data, low.data), high.data)
        return TensorHandle(np.where(np.isnan(arg.data) & keeps_nan, arg.data, clamped), arg.dtype.scalar)

    def create_dot(self, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        return _rounded(super().create_dot(_decoded(a), _decoded(b), d, *rest))

    def create_splat(self, ret_ty: Any, arg: Any) -> Any:
        return super().create_splat(ret_ty, _as_bit(arg))

    def create_unsplat(self, arg: Any) -> Any:
        return super().create_unsplat(_as_bit(arg))

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        """Convert values to another type as a compiled kernel does; note conversions to 16-bit floats in `narrowed`."""
        if src.dtype.scalar in (tl.float32, tl.float64) and dst_type.scalar in (tl.float16, tl.bfloat16):
            narrowed.add("bfloat16" if is_bfloat16(dst_type) else "float16")
        if _is_narrow(src.dtype) or _is_narrow(dst_type):
            return _converted(src, dst_type)
        return super().cast_impl(src, dst_type)

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        if _is_narrow(src.dtype) or _is_narrow(dst_type):
            return _converted(src, dst_type, to_zero=rounding_mode == interpreter._ir.ROUNDING_MODE.RTZ)
        return super().create_fp_to_fp(src, dst_type, rounding_mode)

    def create_bitcast(self, src: Any, dst_type: Any) -> Any:
        """Return the same bits as another type. Here bfloat16 is kept in float32, so its bits are converted first."""
        if is_bfloat16(src.dtype):
            src = TensorHandle(bfloat16_bits(src.data), tl.uint16)
        if is_bfloat16(dst_type):
            return TensorHandle(bfloat16_values(src.data), tl.bfloat16)
        return super().create_bitcast(src, dst_type)

    def create_extern_elementwise(
        self, lib: Any, path: Any, symbol: str, handles: Any, result_type: Any, is_pure: Any
    ) -> Any:
        """A function of the device library, which numpy computes; see `libdevice`."""
        function = libdevice.function_of(symbol) or refusing(f"`{symbol}` of the device library")
        with np.errstate(all="ignore"):
            values = np.asarray(function(*(handle.data for handle in handles)))
        dtype = result_type.scalar
        wanted = interpreter._get_np_dtype(dtype)
        if wanted.kind in "iu" and values.dtype != wanted:
            # Excess bits are dropped, whatever the sign.
            bits = values.astype(object) & ((1 << dtype.primitive_bitwidth) - 1)
            values = bits.astype(f"u{wanted.itemsize}").view(wanted)
        return TensorHandle(values.astype(wanted, copy=False), dtype)


def _rounded(result: Any) -> Any:
    if is_bfloat16(result.dtype) and result.data.dtype != np.bool_:
        result.data = bfloat16_rounded(result.data)
    return result


def _is_narrow(dtype: Any) -> bool:
    return is_bfloat16(dtype) or dtype.scalar.name in FLOAT8


def _decoded(operand: Any) -> Any:
    """The operand; its values as float32 if they are 8-bit floats."""
    source = FLOAT8.get(operand.dtype.scalar.name)
    return operand if source is None else TensorHandle(source.decode(operand.data), tl.float32)


def _converted(src: Any, dst_type: Any, *, to_zero: bool = False) -> Any:
    """Values from or to bfloat16 or 8-bit floats, rounded to nearest even or towards zero."""
    data, target = _decoded(src).data, FLOAT8.get(dst_type.scalar.name)
    if target is not None:
        converted: Any = target.encode(data, to_zero=to_zero)
    elif not is_bfloat16(dst_type):
        converted = data.astype(interpreter._get_np_dtype(dst_type))
    else:
        converted = bfloat16_values(bfloat16_bits(data)) if to_zero else bfloat16_rounded(data)
    return TensorHandle(converted, dst_type.scalar)


def _as_bit(value: Any) -> Any:
    """Return the result of a comparison with its own dtype: the interpreter gives it the dtype of the operands."""
    if value.data.dtype != np.bool_ or value.dtype.scalar.is_int1():
        return value
    return TensorHandle(value.data, tl.int1)


def _sum(lhs: Any, rhs: Any) -> Any:
    """The sum; single bits wrap modulo 2, as all integers wrap at their range."""
    return np.logical_xor(lhs, rhs) if np.result_type(lhs, rhs) == np.bool_ else np.add(lhs, rhs)


def _upper_half(lhs: Any, rhs: Any) -> Any:
    """The upper half of the product of the operands' bits as unsigned numbers; Triton extends signs of negative ones."""
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

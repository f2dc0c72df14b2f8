# ruff: noqa: ARG001 -- replaces methods of the interpreter, whose arguments are fixed
"""
bfloat16 for Triton's interpreter (3.6 and 3.7), which computes on the raw 16 bits and truncates casts.

Here a value is kept as float32 and rounded to nearest even after each operation, as on a device. Only memory holds 16 bits.
Sums and scans along an axis also round after each step (`reductions`).
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

Wide = NDArray[np.float32]


def install(cannot: Callable[[str], Exception]) -> None:
    """Replace the interpreter's bfloat16. `cannot` makes the error for compare and swap, which is missing."""
    _types()
    _memory(cannot)
    _casts()
    _arithmetic()


def rounded(values: Any) -> Wide:
    """The nearest bfloat16 values as float32, ties to even; each NaN becomes the positive quiet NaN."""
    near: Wide = np.asarray(values, dtype=np.float32, order="C").astype(ml_dtypes.bfloat16).astype(np.float32)
    near[np.isnan(near)] = np.nan
    return near


def to_bits(wide: Any) -> NDArray[np.uint16]:
    """The upper 16 bits of float32 values: exact for bfloat16 values, truncated for all other values."""
    bits = np.asarray(wide, dtype=np.float32, order="C").view(np.uint32) >> np.uint32(16)
    return np.asarray(bits, dtype=np.uint16)


def from_bits(bits: Any) -> Wide:
    """The bfloat16 values of 16-bit patterns, as float32."""
    values: Wide = np.asarray(bits, order="C").view(ml_dtypes.bfloat16).astype(np.float32)
    return values


def _is(dtype: Any) -> bool:
    return bool(dtype.scalar.name == "bf16")  # the name of a pointer type differs


def _types() -> None:
    size_fits, dtype_of = interpreter._validate_np_data_size, interpreter._get_np_dtype

    def validate(array: Any, dtype: Any) -> bool:
        return array.itemsize <= 4 if _is(dtype) else bool(size_fits(array, dtype))

    def np_dtype(dtype: Any) -> Any:
        return np.dtype(np.float32) if _is(dtype) else dtype_of(dtype)

    def constant(self: Any, value: float) -> TensorHandle:
        return TensorHandle(rounded([value]), tl.bfloat16)

    interpreter._validate_np_data_size = validate
    interpreter._get_np_dtype = np_dtype
    interpreter.InterpreterBuilder.get_bf16 = constant


def _memory(cannot: Callable[[str], Exception]) -> None:
    builder, native = interpreter.InterpreterBuilder, interpreter._interpreter
    load, store = builder.create_masked_load, builder.create_masked_store
    rmw, cas = builder.create_atomic_rmw, builder.create_atomic_cas
    word = np.dtype(np.uint16)

    def masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *rest: Any, **named: Any) -> Any:
        if not _is(ptrs.get_element_ty()):
            return load(self, ptrs, mask, other, *rest, **named)
        fill = np.zeros_like(ptrs.data, dtype=word) if other is None else to_bits(other.data)
        lanes = mask if isinstance(mask, np.ndarray) else mask.data
        return TensorHandle(from_bits(native.load(ptrs.data, lanes, fill, word)), tl.bfloat16)

    def masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        if not _is(ptrs.get_element_ty()):
            return store(self, ptrs, value, mask, *rest, **named)
        lanes = mask if isinstance(mask, np.ndarray) else mask.data
        return native.store(ptrs.data, to_bits(value.data), lanes)

    def atomic_rmw(self: Any, operation: Any, ptr: Any, val: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        """Triton allows only addition for bfloat16. Lanes run one by one, as two lanes may share an address."""
        if not _is(val.dtype):
            return rmw(self, operation, ptr, val, mask, *rest, **named)
        addresses, terms = np.ravel(ptr.data), np.ravel(val.data)
        old = np.zeros(addresses.shape, dtype=np.float32)
        active, zero = np.ones(1, dtype=bool), np.zeros(1, dtype=word)
        for lane in np.flatnonzero(np.broadcast_to(mask.data, ptr.data.shape)):
            address = addresses[lane : lane + 1]
            old[lane] = from_bits(native.load(address, active, zero, word))[0]
            native.store(address, to_bits(rounded(old[lane : lane + 1] + terms[lane])), active)
        return TensorHandle(old.reshape(ptr.data.shape), tl.bfloat16)

    def atomic_cas(self: Any, ptr: Any, cmp: Any, val: Any, *rest: Any, **named: Any) -> Any:
        if _is(val.dtype):
            raise cannot(
                "the interpreter has no compare and swap of bfloat16, so this device cannot judge it"
            )
        return cas(self, ptr, cmp, val, *rest, **named)

    builder.create_masked_load, builder.create_masked_store = masked_load, masked_store
    builder.create_atomic_rmw, builder.create_atomic_cas = atomic_rmw, atomic_cas


def _casts() -> None:
    builder = interpreter.InterpreterBuilder
    cast, fp_to_fp, bitcast = builder.cast_impl, builder.create_fp_to_fp, builder.create_bitcast

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        if _is(dst_type):
            return TensorHandle(rounded(src.data), tl.bfloat16)
        if _is(src.dtype):
            return TensorHandle(src.data.astype(interpreter._get_np_dtype(dst_type)), dst_type.scalar)
        return cast(self, src, dst_type)

    def create_fp_to_fp(self: Any, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        if not _is(src.dtype) and not _is(dst_type):
            return fp_to_fp(self, src, dst_type, rounding_mode)
        if _is(dst_type) and rounding_mode == interpreter._ir.ROUNDING_MODE.RTZ:
            return TensorHandle(from_bits(to_bits(src.data)), tl.bfloat16)
        return cast_impl(self, src, dst_type)

    def create_bitcast(self: Any, src: Any, dst_type: Any) -> Any:
        if _is(src.dtype) and _is(dst_type):
            return src
        if _is(src.dtype):
            return TensorHandle(to_bits(src.data).view(interpreter._get_np_dtype(dst_type)), dst_type.scalar)
        return (
            TensorHandle(from_bits(src.data), tl.bfloat16) if _is(dst_type) else bitcast(self, src, dst_type)
        )

    builder.cast_impl, builder.create_fp_to_fp = cast_impl, create_fp_to_fp
    builder.create_bitcast = create_bitcast


def _arithmetic() -> None:
    builder = interpreter.InterpreterBuilder
    for name in ("binary_op", "unary_op", "create_fma", "create_dot"):
        setattr(builder, name, _rounding(getattr(builder, name)))
    fabs, to_tensor = builder.create_fabs, interpreter.ReduceScanOpInterface.to_tensor

    def create_fabs(self: Any, arg: Any) -> Any:
        return TensorHandle(np.abs(arg.data), tl.bfloat16) if _is(arg.dtype) else fabs(self, arg)

    def reduced(self: Any, value: Any, dtype: Any) -> Any:
        return to_tensor(self, rounded(value) if _is(dtype) else value, dtype)

    builder.create_fabs = create_fabs
    interpreter.ReduceScanOpInterface.to_tensor = reduced


def _rounding(method: Callable[..., Any]) -> Callable[..., Any]:
    def rounds(self: Any, *args: Any, **named: Any) -> Any:
        result = method(self, *args, **named)
        if _is(result.dtype) and result.data.dtype != np.bool_:
            result.data = rounded(result.data)
        return result

    return rounds

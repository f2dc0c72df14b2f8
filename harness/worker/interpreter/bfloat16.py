# ruff: noqa: ARG001 -- stands in for the interpreter's methods, whose arguments are theirs
"""
bfloat16 in Triton's interpreter, which otherwise computes on its raw 16 bits and truncates casts (3.6 to 3.9).

A bfloat16 value is kept as the float32 of the same value, and rounded to nearest even after each operation, as a device
does; only memory holds 16 bits. Sums and scans along an axis are rounded each time too (`reductions`). Serves Triton 3.6 and 3.7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

Wide = NDArray[np.float32]


def install(cannot: Callable[[str], Exception]) -> None:
    """Teach the interpreter; `cannot` makes the refusal of what is still missing (compare and swap)."""
    _types()
    _memory(cannot)
    _casts()
    _arithmetic()


def rounded(values: Any) -> Wide:
    """The nearest bfloat16 of each value, ties to even, as float32; NaN stays NaN."""
    wide = np.ascontiguousarray(values, dtype=np.float32)
    bits = wide.reshape(-1).view(np.uint32)
    near = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    near = np.where(np.isnan(wide.reshape(-1)), np.uint32(0x7FC00000), near)
    return near.astype(np.uint32).view(np.float32).reshape(np.shape(values))


def to_bits(wide: Any) -> NDArray[np.uint16]:
    """The 16 bits of values that are bfloat16 already."""
    flat = np.ascontiguousarray(wide, dtype=np.float32).reshape(-1).view(np.uint32)
    return (flat >> np.uint32(16)).astype(np.uint16).reshape(np.shape(wide))


def from_bits(bits: Any) -> Wide:
    """The values that 16 bits each stand for."""
    flat = np.ascontiguousarray(bits).reshape(-1).view(np.uint16).astype(np.uint32) << np.uint32(16)
    return flat.view(np.float32).reshape(np.shape(bits))


def _is(dtype: Any) -> bool:
    return bool(dtype.scalar.name == "bf16")  # a pointer's name says that it is one


def _types() -> None:
    sized, dtype_of = interpreter._validate_np_data_size, interpreter._get_np_dtype

    def validate(array: Any, dtype: Any) -> bool:
        return array.itemsize <= 4 if _is(dtype) else bool(sized(array, dtype))

    def np_dtype(dtype: Any) -> Any:
        return np.dtype(np.float32) if _is(dtype) else dtype_of(dtype)

    def constant(self: Any, value: float) -> TensorHandle:
        return TensorHandle(rounded(np.array([value], dtype=np.float32)), tl.bfloat16)

    interpreter._validate_np_data_size = validate
    interpreter._get_np_dtype = np_dtype
    interpreter.InterpreterBuilder.get_bf16 = constant


def _memory(cannot: Callable[[str], Exception]) -> None:
    builder, native = interpreter.InterpreterBuilder, interpreter._interpreter
    load, store = builder.create_masked_load, builder.create_masked_store
    rmw, cas = builder.create_atomic_rmw, builder.create_atomic_cas

    def masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *rest: Any, **named: Any) -> Any:
        if not _is(ptrs.get_element_ty()):
            return load(self, ptrs, mask, other, *rest, **named)
        fill = np.zeros_like(ptrs.data, dtype=np.uint16) if other is None else to_bits(other.data)
        lanes = mask if isinstance(mask, np.ndarray) else mask.data
        return TensorHandle(from_bits(native.load(ptrs.data, lanes, fill, np.dtype(np.uint16))), tl.bfloat16)

    def masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        if not _is(ptrs.get_element_ty()):
            return store(self, ptrs, value, mask, *rest, **named)
        lanes = mask if isinstance(mask, np.ndarray) else mask.data
        return native.store(ptrs.data, to_bits(value.data), lanes)

    def atomic_rmw(self: Any, operation: Any, ptr: Any, val: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        """Triton allows addition alone for this type; lanes one after another, as they may meet."""
        if not _is(val.dtype):
            return rmw(self, operation, ptr, val, mask, *rest, **named)
        places, added = np.ravel(ptr.data), np.ravel(val.data)
        old = np.zeros(places.shape, dtype=np.float32)
        one, zero = np.ones(1, dtype=bool), np.zeros(1, dtype=np.uint16)
        for lane in np.flatnonzero(np.broadcast_to(mask.data, ptr.data.shape)):
            place = places[lane : lane + 1]
            old[lane] = from_bits(native.load(place, one, zero, np.dtype(np.uint16)))[0]
            native.store(place, to_bits(rounded(old[lane : lane + 1] + added[lane])), one)
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
        if not _is(src.dtype) and not _is(dst_type):
            return cast(self, src, dst_type)
        if _is(dst_type):
            return TensorHandle(rounded(src.data.astype(np.float32)), tl.bfloat16)
        return TensorHandle(src.data.astype(interpreter._get_np_dtype(dst_type)), dst_type.scalar)

    def create_fp_to_fp(self: Any, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        if not _is(src.dtype) and not _is(dst_type):
            return fp_to_fp(self, src, dst_type, rounding_mode)
        if _is(dst_type) and rounding_mode == interpreter._ir.ROUNDING_MODE.RTZ:
            return TensorHandle(from_bits(to_bits(src.data.astype(np.float32))), tl.bfloat16)
        return cast_impl(self, src, dst_type)

    def create_bitcast(self: Any, src: Any, dst_type: Any) -> Any:
        if _is(src.dtype) and _is(dst_type):
            return src
        if _is(src.dtype):
            return TensorHandle(to_bits(src.data).view(interpreter._get_np_dtype(dst_type)), dst_type.scalar)
        if _is(dst_type):
            return TensorHandle(from_bits(src.data), tl.bfloat16)
        return bitcast(self, src, dst_type)

    builder.cast_impl, builder.create_fp_to_fp, builder.create_bitcast = (
        cast_impl,
        create_fp_to_fp,
        create_bitcast,
    )


def _arithmetic() -> None:
    builder = interpreter.InterpreterBuilder
    for name in ("binary_op", "unary_op", "create_fma", "create_dot"):
        setattr(builder, name, _rounding(getattr(builder, name)))
    fabs, to_tensor = builder.create_fabs, interpreter.ReduceScanOpInterface.to_tensor

    def create_fabs(self: Any, arg: Any) -> Any:
        return TensorHandle(np.abs(arg.data), tl.bfloat16) if _is(arg.dtype) else fabs(self, arg)

    def reduced(self: Any, value: Any, dtype: Any) -> Any:
        return to_tensor(self, rounded(np.asarray(value)) if _is(dtype) else value, dtype)

    builder.create_fabs = create_fabs
    interpreter.ReduceScanOpInterface.to_tensor = reduced


def _rounding(method: Callable[..., Any]) -> Callable[..., Any]:
    def rounds(self: Any, *args: Any, **named: Any) -> Any:
        result = method(self, *args, **named)
        if _is(result.dtype) and result.data.dtype != np.bool_:
            result.data = rounded(result.data)
        return result

    return rounds

# ruff: noqa: ARG001 -- the arguments of the interpreter's methods are fixed
"""bfloat16 and 8-bit floats for Triton's interpreter, which truncates casts and computes on bfloat16's raw bits.

A bfloat16 value is kept as float32 and rounded to nearest even after each operation, as on a device; only memory holds 16
bits. Sums and scans along an axis also round after each step (`reductions`). An 8-bit value is kept as its bits. Kernels may
cast 8-bit values, multiply them with `tl.dot`, load, store and select them; arithmetic on them is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from harness.worker.interpreter.observing import cannot

from .float_conversions import FLOAT8, Float8, bfloat16_bits, bfloat16_rounded, bfloat16_values

_NO_ARITHMETIC = "the interpreter has no arithmetic on 8-bit floats ({name}), so this device cannot judge it; cast them first"
_NO_SWAP = "the interpreter has no compare and swap of bfloat16, so this device cannot judge it"


narrowed: set[str] = set()
"""Names of the 16-bit floats to which kernels of this process cast wider ones."""


def install() -> None:
    """Once a process, after `arithmetic.install` and before `accesses.install`."""
    _types()
    _memory()
    _atomics()
    _casts()
    _arithmetic()


def _is_bfloat16(dtype: Any) -> bool:
    return bool(dtype.scalar.name == "bf16")  # the name of a pointer type differs


def _float8(dtype: Any) -> Float8 | None:
    return FLOAT8.get(dtype.scalar.name)


def _refuse_float8(dtype: Any) -> None:
    if _float8(dtype) is not None:
        raise cannot(_NO_ARITHMETIC.format(name=dtype.scalar))


def _types() -> None:
    size_fits, dtype_of = interpreter._validate_np_data_size, interpreter._get_np_dtype
    dtypes: dict[str, Any] = {}

    def validate(array: Any, dtype: Any) -> bool:
        return array.itemsize <= 4 if _is_bfloat16(dtype) else bool(size_fits(array, dtype))

    def np_dtype(dtype: Any) -> Any:
        """Triton builds its whole table for each lookup."""
        name = dtype.scalar.name
        if name not in dtypes:
            dtypes[name] = np.dtype(np.float32) if _is_bfloat16(dtype) else dtype_of(dtype)
        return dtypes[name]

    def constant(self: Any, value: float) -> TensorHandle:
        return TensorHandle(bfloat16_rounded([value]), tl.bfloat16)

    interpreter._validate_np_data_size = validate
    interpreter._get_np_dtype = np_dtype
    interpreter.InterpreterBuilder.get_bf16 = constant


def _memory() -> None:
    builder, native = interpreter.InterpreterBuilder, interpreter._interpreter
    load, store = builder.create_masked_load, builder.create_masked_store
    word = np.dtype(np.uint16)

    def masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *rest: Any, **named: Any) -> Any:
        if not _is_bfloat16(ptrs.get_element_ty()):
            return load(self, ptrs, mask, other, *rest, **named)
        fill = np.zeros_like(ptrs.data, dtype=word) if other is None else bfloat16_bits(other.data)
        lanes = mask if isinstance(mask, np.ndarray) else mask.data
        return TensorHandle(bfloat16_values(native.load(ptrs.data, lanes, fill, word)), tl.bfloat16)

    def masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        if not _is_bfloat16(ptrs.get_element_ty()):
            return store(self, ptrs, value, mask, *rest, **named)
        lanes = mask if isinstance(mask, np.ndarray) else mask.data
        return native.store(ptrs.data, bfloat16_bits(value.data), lanes)

    builder.create_masked_load, builder.create_masked_store = masked_load, masked_store


def _atomics() -> None:
    builder, native = interpreter.InterpreterBuilder, interpreter._interpreter
    rmw, cas = builder.create_atomic_rmw, builder.create_atomic_cas
    word = np.dtype(np.uint16)

    def atomic_rmw(self: Any, operation: Any, ptr: Any, val: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        """Triton allows only addition for bfloat16. Lanes run one by one, as two lanes may share an address."""
        _refuse_float8(val.dtype)
        if not _is_bfloat16(val.dtype):
            return rmw(self, operation, ptr, val, mask, *rest, **named)
        addresses, terms = np.ravel(ptr.data), np.ravel(val.data)
        old = np.zeros(addresses.shape, dtype=np.float32)
        active, zero = np.ones(1, dtype=bool), np.zeros(1, dtype=word)
        for lane in np.flatnonzero(np.broadcast_to(mask.data, ptr.data.shape)):
            address = addresses[lane : lane + 1]
            old[lane] = bfloat16_values(native.load(address, active, zero, word))[0]
            total = bfloat16_rounded(old[lane : lane + 1] + terms[lane])
            native.store(address, bfloat16_bits(total), active)
        return TensorHandle(old.reshape(ptr.data.shape), tl.bfloat16)

    def atomic_cas(self: Any, ptr: Any, cmp: Any, val: Any, *rest: Any, **named: Any) -> Any:
        _refuse_float8(val.dtype)
        if _is_bfloat16(val.dtype):
            raise cannot(_NO_SWAP)
        return cas(self, ptr, cmp, val, *rest, **named)

    builder.create_atomic_rmw, builder.create_atomic_cas = atomic_rmw, atomic_cas


def _casts() -> None:
    builder = interpreter.InterpreterBuilder
    cast, fp_to_fp, bitcast = builder.cast_impl, builder.create_fp_to_fp, builder.create_bitcast

    def is_narrow(dtype: Any) -> bool:
        return _is_bfloat16(dtype) or _float8(dtype) is not None

    def convert(src: Any, dst_type: Any, *, to_zero: bool = False) -> Any:
        data, target = _decoded(src).data, _float8(dst_type)
        if target is not None:
            converted: Any = target.encode(data, to_zero=to_zero)
        elif not _is_bfloat16(dst_type):
            converted = data.astype(interpreter._get_np_dtype(dst_type))
        else:
            converted = bfloat16_values(bfloat16_bits(data)) if to_zero else bfloat16_rounded(data)
        return TensorHandle(converted, dst_type.scalar)

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        if src.dtype.scalar in (tl.float32, tl.float64) and dst_type.scalar in (tl.float16, tl.bfloat16):
            narrowed.add("bfloat16" if _is_bfloat16(dst_type) else "float16")
        return (
            convert(src, dst_type)
            if is_narrow(src.dtype) or is_narrow(dst_type)
            else cast(self, src, dst_type)
        )

    def create_fp_to_fp(self: Any, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        if not is_narrow(src.dtype) and not is_narrow(dst_type):
            return fp_to_fp(self, src, dst_type, rounding_mode)
        return convert(src, dst_type, to_zero=rounding_mode == interpreter._ir.ROUNDING_MODE.RTZ)

    def create_bitcast(self: Any, src: Any, dst_type: Any) -> Any:
        if _is_bfloat16(src.dtype):
            if _is_bfloat16(dst_type):
                return src
            bits = bfloat16_bits(src.data).view(interpreter._get_np_dtype(dst_type))
            return TensorHandle(bits, dst_type.scalar)
        if _is_bfloat16(dst_type):
            return TensorHandle(bfloat16_values(src.data), tl.bfloat16)
        return bitcast(self, src, dst_type)

    builder.cast_impl, builder.create_fp_to_fp = cast_impl, create_fp_to_fp
    builder.create_bitcast = create_bitcast


def _decoded(operand: Any) -> Any:
    """The operand; its values as float32 if they are 8-bit floats."""
    source = _float8(operand.dtype)
    return operand if source is None else TensorHandle(source.decode(operand.data), tl.float32)


def _arithmetic() -> None:
    builder = interpreter.InterpreterBuilder
    for name in ("binary_op", "unary_op", "create_fma"):
        setattr(builder, name, _rounding(_refusing(getattr(builder, name))))
    builder.create_clampf = _refusing(builder.create_clampf)
    fabs, dot, to_tensor = (
        _refusing(builder.create_fabs),
        _rounding(builder.create_dot),
        interpreter.ReduceScanOpInterface.to_tensor,
    )

    def create_fabs(self: Any, arg: Any) -> Any:
        return TensorHandle(np.abs(arg.data), tl.bfloat16) if _is_bfloat16(arg.dtype) else fabs(self, arg)

    def create_dot(self: Any, a: Any, b: Any, d: Any, *rest: Any, **named: Any) -> Any:
        return dot(self, _decoded(a), _decoded(b), d, *rest, **named)

    def reduced(self: Any, value: Any, dtype: Any) -> Any:
        _refuse_float8(dtype)
        return to_tensor(self, bfloat16_rounded(value) if _is_bfloat16(dtype) else value, dtype)

    builder.create_fabs, builder.create_dot = create_fabs, create_dot
    interpreter.ReduceScanOpInterface.to_tensor = reduced


def _rounding(method: Callable[..., Any]) -> Callable[..., Any]:
    def rounds(self: Any, *args: Any, **named: Any) -> Any:
        result = method(self, *args, **named)
        if _is_bfloat16(result.dtype) and result.data.dtype != np.bool_:
            result.data = bfloat16_rounded(result.data)
        return result

    return rounds


def _refusing(method: Callable[..., Any]) -> Callable[..., Any]:
    def refuses(self: Any, *args: Any, **named: Any) -> Any:
        for arg in args:
            # The size comes first, as the cheaper test: this runs for every operation.
            if isinstance(arg, TensorHandle) and arg.data.itemsize == 1:
                _refuse_float8(arg.dtype)
        return method(self, *args, **named)

    return refuses

"""Arguments of launches as a compiler takes them: the integer 1 is a constant, other numbers are typed tensors.

The type comes from the number's size or from the parameter's annotation. The interpreter makes a tensor of every integer,
leaves fractions to Python and ignores annotations. As in a launcher, a parameter of a fixed type never becomes a
constant, nor does a parameter in `do_not_specialize`. Constants stay constants in the functions that they are passed to.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from harness.worker.interpreter.traffic import cannot
from harness.worker.triton_hooks.launches import parameters_of

from .float_conversions import FLOAT8, bfloat16_bits, bfloat16_values


def arguments(kernel: Any, bound: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a launch's programs; `TypeError` or `OverflowError` for values that a launch refuses."""
    named = getattr(kernel, "kwargs", {}).get("do_not_specialize")
    kept = getattr(kernel, "do_not_specialize", None) or named or ()
    converted: dict[str, Any] = {}
    for parameter in parameters_of(kernel):
        name, value = parameter.name, bound[parameter.name]
        if parameter.is_constexpr:
            converted[name] = value
        elif parameter.annotation_type:  # as `i8` or `*fp16`
            converted[name] = _of_type(name, value, str(parameter.annotation_type))
        elif parameter.num in kept or name in kept:
            converted[name] = interpreter._implicit_cvt(value)
        else:
            converted[name] = _specialised(value)
    return converted


def number(value: float) -> Any:
    """The tensor that a compiler makes of a number: fractions are float32, integers as wide as they need."""
    if isinstance(value, bool):
        return _tensor("u1", value)
    if isinstance(value, float):
        return _tensor("fp32", value)
    if -(1 << 31) <= value < 1 << 31:
        return _tensor("i32", value)
    return _tensor("i64" if value < 1 << 63 else "u64", value)


def _specialised(value: Any) -> Any:
    """Return an argument as a launch specialises it: the integer 1 is a constant, other numbers become tensors."""
    if isinstance(value, int) and not isinstance(value, bool) and value == 1:
        return 1
    if isinstance(value, tuple):
        return interpreter._tuple_create(value, map(_specialised, value))
    return interpreter._implicit_cvt(value)


def _of_type(name: str, value: Any, kind: str) -> Any:
    """Return the value of a parameter that is annotated with a type, such as `i8` or `*fp16`.

    Raises `TypeError` for a value of another type, `OverflowError` for a number that does not fit.
    """
    if kind.startswith("*"):
        return _pointer(name, value, kind)
    if not isinstance(value, (int, float)):
        raise TypeError(f"`{name}` is annotated as a number ({kind}) and given {type(value).__name__}")
    return _tensor(kind, value)


def _pointer(name: str, value: Any, kind: str) -> Any:
    """A pointer of the annotated type, whatever the tensor's dtype. `None` and integers are addresses."""
    to = tl.str_to_ty(kind, None)
    element = to.element_ty
    if element.is_fp8() and element.name not in FLOAT8:
        raise cannot(f"the interpreter computes {element} wrongly, so this device cannot judge it")
    if value is None or isinstance(value, int):
        return _wrapped(np.array([value or 0], dtype=np.uint64), to)
    pointer = interpreter._implicit_cvt(value)
    if not isinstance(pointer, tl.tensor) or not isinstance(pointer.dtype, tl.pointer_type):
        raise TypeError(f"`{name}` is annotated as a pointer ({kind}) and given {type(value).__name__}")
    pointer.handle.dtype = to
    return tl.tensor(pointer.handle, to)


def _tensor(kind: str, value: float) -> Any:
    """A number as a launcher passes it: integers lose the bits that do not fit; fractions too large for float16 are refused."""
    to = tl.str_to_ty(kind, None)
    if to.is_fp8():
        raise TypeError(f"a launch takes no number of the type {kind}")
    if to.is_floating():
        return _wrapped(_fraction(kind, float(value)), to)
    if isinstance(value, float):
        raise TypeError(f"a launch takes no fraction for an integer of the type {kind}")
    if kind == "u1":
        if value not in (0, 1):
            raise TypeError(f"a launch takes {value} for no bit")
        return _wrapped(np.array([bool(value)]), to)
    bits = to.primitive_bitwidth
    most = 1 << (64 if kind.startswith("u") else 63)
    if not (0 if kind.startswith("u") else -most) <= value < most:
        raise OverflowError(f"a launch takes no {value} for {kind}")
    low = np.array([value & ((1 << bits) - 1)], dtype=f"u{bits // 8}")
    return _wrapped(low.view(interpreter._get_np_dtype(to)), to)


def _fraction(kind: str, value: float) -> Any:
    """Return a number as an array of one element with the precision of its type; bfloat16 is truncated, as launchers do."""
    if kind == "fp16":
        return np.frombuffer(struct.pack("<e", value), dtype=np.float16).copy()
    single = np.array([value], dtype=np.float64 if kind == "fp64" else np.float32)
    # Launchers truncate a float32 to bfloat16.
    return bfloat16_values(bfloat16_bits(single)) if kind == "bf16" else single


def _wrapped(data: Any, to: Any) -> Any:
    return tl.tensor(TensorHandle(data, to), to)

"""
numpy calls for a tape's operations, without the interpreter's checks of types, sizes, 8-bit and bfloat16 values.

Only for operations on plain numbers, where these checks find nothing. Touches internals of Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from . import reductions
from .observing import meet

_ELEMENTWISE = ("binary_op", "unary_op", "ternary_op")
_CASTS = frozenset(
    {"create_si_to_fp", "create_ui_to_fp", "create_fp_ext", "create_fp_trunc", "create_int_cast"}
)
"""Not from floats to integers, where values out of range are undefined."""
_RESHAPING = frozenset({"create_expand_dims", "create_reshape"})
_REDUCTIONS = {
    tl.standard._sum_combine: np.add,
    tl.standard._elementwise_max: np.fmax,
    tl.standard._elementwise_min: np.fmin,
}
_new = object.__new__


def direct_call(name: str, args: Sequence[Any], result: Any) -> Callable[..., Any] | None:
    """A numpy call that repeats this operation of a traced program without the interpreter's checks.

    It takes arguments with the types and shapes of the traced `args`. It is tried on these `args`, and returned only if it
    gives `result` bit for bit. `None`: the tape repeats the operation through the interpreter.
    """
    if isinstance(result, tl.tensor):
        result = result.handle
    if not isinstance(result, TensorHandle) or not _is_plain(result.dtype):
        return None
    if not all(_is_plain(arg.dtype) for arg in args if isinstance(arg, (TensorHandle, tl.tensor))):
        return None
    call = _find_call(name, args, result)
    if call is None:
        return None
    try:
        again = call(*args)
    except (AttributeError, TypeError, ValueError):
        return None
    got, expected = again.data, result.data
    same = (
        vars(again).keys() == vars(result).keys()
        and getattr(again, "origin", None) is getattr(result, "origin", None)
        and (got.dtype, got.shape, got.strides) == (expected.dtype, expected.shape, expected.strides)
        and got.tobytes() == expected.tobytes()
    )
    return call if same else None


def numpy_function(name: str) -> Any:
    """The numpy function of a builder's method that only passes it to `binary_op` and the like; else `None`."""
    return _passed_on(getattr(interpreter.InterpreterBuilder, name, None))


@functools.cache
def _passed_on(method: Any) -> Any:
    functions: list[Any] = []
    probe = SimpleNamespace(**dict.fromkeys(_ELEMENTWISE, lambda *args: functions.append(args[-1])))

    code = getattr(method, "__code__", None)
    if code is None or not set(_ELEMENTWISE) & set(code.co_names):
        return None
    try:
        method(probe, *[None] * (code.co_argcount - 1))
    except (AttributeError, TypeError):
        return None
    return functions[0] if len(functions) == 1 else None


def _is_plain(dtype: Any) -> bool:
    if isinstance(dtype, tl.pointer_type):
        return True
    return isinstance(dtype.scalar, tl.dtype) and dtype.scalar.name in (
        *("int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("fp16", "fp32", "fp64"),
    )


def _find_call(name: str, args: Sequence[Any], result: TensorHandle) -> Callable[..., Any] | None:
    dtype, kind, shape = result.dtype, result.data.dtype, result.data.shape
    if name in ("ReduceOps", "ScanOps"):
        return _reduction(args, result) if name == "ReduceOps" and len(args) == 2 else None
    if name in _CASTS:
        return lambda source, *_: _handle(source.data.astype(kind), dtype)
    if name == "create_splat":
        return lambda _, source: _pointing(_full(shape, kind, source.data), dtype, source)
    if name in _RESHAPING and not (name == "create_reshape" and args[-1]):
        return lambda source, *_: _pointing(source.data.reshape(shape), dtype, source)
    if name == "create_broadcast":
        return lambda source, *_: _pointing(np.broadcast_to(source.data, shape), dtype, source)
    if name == "create_addptr":
        step = max(1, args[0].get_element_ty().primitive_bitwidth // 8)
        return lambda pointer, offset: _pointing(
            pointer.data + step * offset.data.astype(np.uint64), dtype, pointer
        )
    function = numpy_function(name)
    if function is None or isinstance(dtype, tl.pointer_type):
        return None
    count = getattr(interpreter.InterpreterBuilder, name).__code__.co_argcount - 1
    return _elementwise(function, count, dtype, kind)


def _elementwise(function: Any, count: int, dtype: Any, kind: Any) -> Callable[..., Any] | None:
    """Results of integers can be wider than their dtype; they are cut."""

    def unary(a: Any) -> TensorHandle:
        return _handle(function(a.data), dtype)

    def binary(a: Any, b: Any) -> TensorHandle:
        data = function(a.data, b.data)
        return _handle(data if data.dtype == kind else data.astype(kind), dtype)

    def ternary(a: Any, b: Any, c: Any, *_: Any) -> TensorHandle:
        data = function(a.data, b.data, c.data)
        return _handle(data if data.dtype == kind else data.astype(kind), dtype)

    calls: dict[int, Callable[..., Any]] = {1: unary, 2: binary, 3: ternary, 4: ternary}
    return calls.get(count)


def _reduction(args: Sequence[Any], result: TensorHandle) -> Callable[..., Any] | None:
    reduction, _ = args
    if not isinstance(args[1], tl.tensor) or args[1].dtype == tl.int1:
        return None
    function: Any = _REDUCTIONS.get(reduction.combine_fn)
    if function is None:
        return None
    dtype, kind, shape = result.dtype, result.data.dtype, result.data.shape
    axis, keep = reduction.axis, bool(reduction.keep_dims)
    reduce = function.reduce
    meets = reductions.is_across_warps(args[1].handle.data.shape, axis)
    if function is np.add and dtype.is_floating():
        reduce = reductions.adder(dtype)

    def reduced(_: Any, source: Any) -> TensorHandle:
        if meets:
            meet()
        total = reduce(source.handle.data, axis=axis, keepdims=keep)
        return _handle(np.asarray(total, dtype=kind).reshape(shape), dtype)

    return reduced


def _full(shape: tuple[int, ...], kind: Any, value: Any) -> Any:
    data = np.empty(shape, dtype=kind)
    data[...] = value
    return data


def _handle(data: Any, dtype: Any) -> TensorHandle:
    handle: TensorHandle = _new(TensorHandle)
    handle.__dict__ = {"data": data, "dtype": dtype, "attr": {}}
    return handle


def _pointing(data: Any, dtype: Any, source: Any) -> TensorHandle:
    """A handle; a pointer gets the origin of its argument, see `accesses`."""
    handle = _handle(data, dtype)
    if isinstance(dtype, tl.pointer_type):
        origin = source.__dict__.get("origin")
        if origin is not None:
            handle.origin = origin
    return handle

"""
Operations of a tape without what the interpreter asks anew each time: types, checks of sizes, 8-bit and bfloat16 values.

Only for operations whose handles hold plain numbers, where those checks find nothing, and only where the shorter way gives the
traced result again, bit for bit. Touches the internals of Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
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
"""Not from floats to integers: what is out of range has no value."""
_RESHAPING = frozenset({"create_expand_dims", "create_reshape"})
_REDUCTIONS = {
    tl.standard._sum_combine: np.add,
    tl.standard._elementwise_max: np.fmax,
    tl.standard._elementwise_min: np.fmin,
}
_new = object.__new__


def lowered(name: str, args: Sequence[Any], result: Any) -> Callable[..., Any] | None:
    """What may be called with `args`, or others of their types and shapes, for a handle like `result`; `None` where nothing may."""
    if isinstance(result, tl.tensor):
        result = result.handle
    if not isinstance(result, TensorHandle) or not _is_plain(result.dtype):
        return None
    if not all(_is_plain(one.dtype) for one in args if isinstance(one, (TensorHandle, tl.tensor))):
        return None
    call = _shorter(name, args, result)
    if call is None:
        return None
    try:
        again = call(*args)
    except (AttributeError, TypeError, ValueError):
        return None
    same = vars(again).keys() == vars(result).keys() and getattr(again, "origin", None) is getattr(
        result, "origin", None
    )
    got, had = again.data, result.data
    same = same and got.dtype == had.dtype and got.shape == had.shape and got.strides == had.strides
    return call if same and got.tobytes() == had.tobytes() else None


def numpy_function(name: str) -> Any:
    """The function that a builder's method hands to `binary_op` and the like, doing nothing else; `None` for others."""
    return _handed_on(getattr(interpreter.InterpreterBuilder, name, None))


@functools.cache
def _handed_on(method: Any) -> Any:
    found: list[Any] = []

    class Asked:
        """Stands for the builder."""

        def __getattr__(self, name: str) -> Any:
            if name in _ELEMENTWISE:
                return lambda *given: found.append(given[-1])
            raise AttributeError(name)

    code = getattr(method, "__code__", None)
    if code is None or not set(_ELEMENTWISE) & set(code.co_names):
        return None
    try:
        method(Asked(), *[None] * (code.co_argcount - 1))
    except (AttributeError, TypeError):
        return None
    return found[0] if len(found) == 1 else None


def _is_plain(dtype: Any) -> bool:
    if isinstance(dtype, tl.pointer_type):
        return True
    return isinstance(dtype.scalar, tl.dtype) and dtype.scalar.name in (
        *("int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("fp16", "fp32", "fp64"),
    )


def _shorter(name: str, args: Sequence[Any], result: TensorHandle) -> Callable[..., Any] | None:
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
    """Results of integers can be wider than their dtype, and are then cut."""

    def one(a: Any) -> TensorHandle:
        return _handle(function(a.data), dtype)

    def two(a: Any, b: Any) -> TensorHandle:
        data = function(a.data, b.data)
        return _handle(data if data.dtype == kind else data.astype(kind), dtype)

    def three(a: Any, b: Any, c: Any, *_: Any) -> TensorHandle:
        data = function(a.data, b.data, c.data)
        return _handle(data if data.dtype == kind else data.astype(kind), dtype)

    ways: dict[int, Callable[..., Any]] = {1: one, 2: two, 3: three, 4: three}
    return ways.get(count)


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
        found = reduce(source.handle.data, axis=axis, keepdims=keep)
        return _handle(np.asarray(found, dtype=kind).reshape(shape), dtype)

    return reduced


def _full(shape: tuple[int, ...], kind: Any, value: Any) -> Any:
    made = np.empty(shape, dtype=kind)
    made[...] = value
    return made


def _handle(data: Any, dtype: Any) -> TensorHandle:
    made: TensorHandle = _new(TensorHandle)
    made.__dict__ = {"data": data, "dtype": dtype, "attr": {}}
    return made


def _pointing(data: Any, dtype: Any, source: Any) -> TensorHandle:
    """A pointer's result points where its argument does; see `accesses`."""
    made = _handle(data, dtype)
    if isinstance(dtype, tl.pointer_type):
        origin = source.__dict__.get("origin")
        if origin is not None:
            made.origin = origin
    return made

"""
Loops of interpreted kernels count in tensors, as they do where they are compiled.

The interpreter counts in Python's integers, whose quotients round down, which know no overflow and have no type, so that
a kernel could tell it from a device. A compiled loop counts upwards until it is not less than its end, as signed numbers; it counts down only where
its step is a constant. `tl.static_range` counts at compile time and keeps Python's integers. Touches the internals of
Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Iterator
from typing import Any

import triton.language as tl
from triton.runtime import interpreter

_LOOP = "looped"


def install() -> None:
    """Once a process, before a kernel is interpreted."""
    setattr(interpreter.interpreter_semantic, _LOOP, _looped)
    interpreter.ASTTransformer.visit_For = _visit_for


def patch(scope: Any) -> None:
    """Puts the loops of Triton's language where kernels find them, until the scope is restored."""
    for owner in (tl, tl.core):
        scope.set_attr(owner, "range", _range)
        scope.set_attr(owner, "static_range", _static_range)


def _visit_for(self: Any, node: ast.For) -> ast.For:
    self.generic_visit(node)
    call = node.iter
    if isinstance(call, ast.Call):
        semantic = ast.Name(id="interpreter_semantic", ctx=ast.Load())
        loop = ast.Attribute(value=semantic, attr=_LOOP, ctx=ast.Load())
        node.iter = ast.Call(func=loop, args=[call.func, *call.args], keywords=call.keywords)
    return node


def _looped(iterator: Any, *given: Any, **named: Any) -> Any:
    """What a loop goes over: Python's `range`, however it was come by, is Triton's."""
    return (_range if iterator is builtins.range else iterator)(*given, **named)


def _static_range(arg1: Any, arg2: Any = None, step: Any = None) -> range:
    start, end = (0, arg1) if arg2 is None else (arg1, arg2)
    return range(start, end, 1 if step is None else step)


def _range(arg1: Any, arg2: Any = None, step: Any = None, **_: Any) -> Iterator[Any]:
    """The values of a loop, in the type that its bounds have together; `ValueError` where it has no end."""
    semantic = interpreter.interpreter_semantic
    given = (0, arg1) if arg2 is None else (arg1, arg2)
    bounds = [_plain(one) for one in (*given, 1 if step is None else step)]
    dtype = functools.reduce(semantic.integer_promote_impl, map(_dtype, bounds))
    bits = int(dtype.primitive_bitwidth)
    for value in _counted(*bounds, bits=bits):
        yield semantic.scalar_constant(value if dtype.is_int_signed() else value % (1 << bits), dtype)


def _counted(start: Any, end: Any, step: Any, *, bits: int) -> range:
    first, last, by = (_signed(int(one), bits) for one in (start, end, step))
    if by < 0 and not isinstance(step, tl.tensor):
        return range(first, last, by)
    if first >= last:
        return range(0)
    if by <= 0:
        raise ValueError(
            f"a loop from {first} to {last} by {by} has no end where it is compiled: a step that is no constant counts upwards; "
            "make it a tl.constexpr"
        )
    return range(first, last, by)


def _signed(value: int, bits: int) -> int:
    """The number that the same bits are to a comparison."""
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def _plain(value: Any) -> Any:
    return value if isinstance(value, tl.tensor) else getattr(value, "value", value)


def _dtype(bound: Any) -> Any:
    """Of a value; of a constant the narrowest from 32 bits on, which from 2^31 on has no sign."""
    if isinstance(bound, tl.tensor):
        return bound.dtype
    for bits in (32, 64):
        if -(1 << (bits - 1)) <= bound < 1 << bits:
            return getattr(tl, f"{'int' if bound < 1 << (bits - 1) else 'uint'}{bits}")
    raise ValueError(f"a loop's bound is {bound}, which 64 bits do not hold")

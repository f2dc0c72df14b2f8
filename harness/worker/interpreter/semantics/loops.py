"""Loops of interpreted kernels count in tensors, as compiled loops do.

The interpreter counts in Python's integers: quotients round down, nothing overflows and there is no type. So a kernel could
detect the interpreter. A compiled loop counts upwards, as signed numbers, until it is not less than its end; it counts down
only if its step is a constant. `tl.static_range` counts at compile time and keeps Python's integers.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Iterator
from typing import Any

import triton.language as tl
from triton.runtime import interpreter

from .expressions import semantic_call


def install() -> None:
    """Once a process, before a kernel is interpreted."""
    interpreter.interpreter_semantic.looped = _looped
    interpreter.ASTTransformer.visit_For = _visit_for


def patch(scope: Any) -> None:
    """Replace the loops of Triton's language until the scope is restored."""
    for owner in (tl, tl.core):
        scope.set_attr(owner, "range", _range)
        scope.set_attr(owner, "static_range", _static_range)


def _visit_for(self: Any, node: ast.For) -> ast.For:
    self.generic_visit(node)
    call = node.iter
    if isinstance(call, ast.Call):
        node.iter = semantic_call("looped", call, [call.func, *call.args], call.keywords)
    return node


def _looped(iterator: Any, *args: Any, **named: Any) -> Any:
    """The values of a loop; Python's `range`, under any name, is Triton's."""
    return (_range if iterator is builtins.range else iterator)(*args, **named)


def _static_range(arg1: Any, arg2: Any = None, step: Any = None) -> range:
    start, end = (0, arg1) if arg2 is None else (arg1, arg2)
    return range(start, end, 1 if step is None else step)


def _range(arg1: Any, arg2: Any = None, step: Any = None, **_: Any) -> Iterator[Any]:
    """The values of a loop, in the common type of its bounds; `ValueError` if the loop has no end."""
    semantic = interpreter.interpreter_semantic
    ends = (0, arg1) if arg2 is None else (arg1, arg2)
    bounds = [_plain(bound) for bound in (*ends, 1 if step is None else step)]
    dtype = functools.reduce(semantic.integer_promote_impl, map(_dtype, bounds))
    bits = int(dtype.primitive_bitwidth)
    for value in _counted(*bounds, bits=bits):
        yield semantic.scalar_constant(value if dtype.is_int_signed() else value % (1 << bits), dtype)


def _counted(start: Any, end: Any, step: Any, *, bits: int) -> range:
    first, last, by = (_signed(int(bound), bits) for bound in (start, end, step))
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
    """The signed number with the same bits."""
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def _plain(value: Any) -> Any:
    return value if isinstance(value, tl.tensor) else getattr(value, "value", value)


def _dtype(bound: Any) -> Any:
    """The type of a tensor; the narrowest type of 32 or 64 bits that holds a constant, unsigned if no signed type does."""
    if isinstance(bound, tl.tensor):
        return bound.dtype
    for bits in (32, 64):
        if -(1 << (bits - 1)) <= bound < 1 << bits:
            return getattr(tl, f"{'int' if bound < 1 << (bits - 1) else 'uint'}{bits}")
    raise ValueError(f"a loop's bound is {bound}, which 64 bits do not hold")

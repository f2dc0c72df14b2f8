"""
Loops of interpreted kernels count in tensors, as they do where they are compiled.

The interpreter counts in Python's integers, whose quotients round down, which know no overflow and have no type, so that
a kernel could tell it from a device. `tl.static_range` counts at compile time and keeps them. Touches the internals of
Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator
from typing import Any

import triton.language as tl
from triton.runtime import interpreter

_LOOP = "counted_in_tensors"
_INT32 = range(-(1 << 31), 1 << 31)


def install() -> None:
    """Once a process, before a kernel is interpreted."""
    setattr(interpreter.interpreter_semantic, _LOOP, _counted)
    interpreter.ASTTransformer.visit_For = _visit_for


def _visit_for(self: Any, node: ast.For) -> ast.For:
    self.generic_visit(node)
    call = node.iter
    if isinstance(call, ast.Call) and _name(call.func) == "range":
        semantic = ast.Name(id="interpreter_semantic", ctx=ast.Load())
        loop = ast.Attribute(value=semantic, attr=_LOOP, ctx=ast.Load())
        node.iter = ast.Call(func=loop, args=[call.func, *call.args], keywords=call.keywords)
    return node


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _counted(counter: Callable[..., range], *bounds: Any, **named: Any) -> Iterator[Any]:
    """The values of a `range`, in the type that its bounds have together."""
    semantic = interpreter.interpreter_semantic
    dtype = functools.reduce(semantic.integer_promote_impl, map(_dtype, bounds), tl.int32)
    for value in counter(*bounds, **named):
        yield semantic.scalar_constant(value, dtype)


def _dtype(bound: Any) -> Any:
    bound = getattr(bound, "value", bound)
    if isinstance(bound, tl.tensor):
        return bound.dtype
    return tl.int32 if int(bound) in _INT32 else tl.int64

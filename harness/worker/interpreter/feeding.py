"""Which statements of a loop's body make what dots of the same turn are made of, by the text."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_DOTS = frozenset({"dot", "dot_scaled"})
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)


def feeding(body: Iterable[ast.stmt]) -> list[bool]:
    """Of each statement of the body itself whether it does; none that is a loop or a condition does.

    A function that is called by a bare name may hold one.
    """
    needed: set[str] = set()
    found = []
    for statement in reversed(list(body)):
        assigned = _assigned(statement)
        feeds = not needed.isdisjoint(assigned)
        simple = isinstance(statement, _SIMPLE)
        if feeds and isinstance(statement, (ast.Assign, ast.AnnAssign)):
            needed -= assigned
        operands = [one for call in _calls(statement) for one in _operands(call)] if simple else []
        for one in (statement, *operands) if feeds else operands:
            needed |= _names(one)
        found.append(simple and (feeds or any(_has_call(one) for one in operands)))
    return found[::-1]


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    return (one for one in ast.walk(statement) if isinstance(one, ast.Call))


def _operands(call: ast.Call) -> list[ast.expr]:
    """What a dot is made of, its sum apart; of a function by a bare name all that it is given."""
    function = call.func
    if isinstance(function, ast.Name) and function.id not in _DOTS:
        return [*call.args, *(one.value for one in call.keywords)]
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name not in _DOTS:
        return []
    return [*call.args[:2], *(one.value for one in call.keywords if one.arg in ("input", "other"))]


def _has_call(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Call) for one in ast.walk(node))


def _assigned(statement: ast.stmt) -> set[str]:
    return {
        one.id for one in ast.walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}

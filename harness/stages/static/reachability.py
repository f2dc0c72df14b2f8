"""Parts of a candidate's text that may run: its import, and the functions and classes that its import or an entry point names."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FIELDS = ("body", "orelse", "finalbody", "handlers", "cases")


class Reachable:
    """
    A module without the functions and classes that no running code names.

    A name counts wherever it occurs; a name that is bound twice reaches both definitions. Names in strings are not followed. But
    a definition is reached if one of the module's own functions decorates it, because the decorator may keep it in a table.
    """

    def __init__(self, body: Iterable[ast.stmt], entry_points: Collection[str]) -> None:
        statements = [inner for statement in body for inner in statements_in(statement)]
        definitions: dict[str, list[Definition]] = {}
        waiting: list[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, _DEFINITIONS):
                definitions.setdefault(statement.name, []).append(statement)
            else:
                waiting.append(statement)
        for name, same_name in list(definitions.items()):
            decorators = [decorator for definition in same_name for decorator in definition.decorator_list]
            kept = any(_root_name(decorator) in definitions for decorator in decorators)
            if kept or name in entry_points or name.startswith("__"):
                waiting += definitions.pop(name)
        self._reached: list[ast.stmt] = []
        while waiting:
            statement = waiting.pop()
            self._reached.append(statement)
            for node in _own_nodes(statement):
                if isinstance(node, ast.Name):
                    waiting += definitions.pop(node.id, ())

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """Functions and classes at the module's top level."""
        return tuple(statement for statement in self._reached if isinstance(statement, _DEFINITIONS))

    def nodes(self) -> Iterator[ast.AST]:
        """All nodes that may run."""
        for statement in self._reached:
            yield from _own_nodes(statement)


def statements_in(node: ast.AST) -> Iterator[ast.stmt]:
    """A statement or module with all statements in its branches, in their order, without the insides of definitions."""
    if isinstance(node, ast.stmt):
        yield node
    if not isinstance(node, _DEFINITIONS):
        for field in _FIELDS:
            for inner in getattr(node, field, ()):
                yield from statements_in(inner)


def _own_nodes(root: ast.stmt) -> Iterator[ast.AST]:
    """All nodes of a definition; for another statement its nodes without the statements inside it."""
    waiting: list[ast.AST] = [root]
    whole = isinstance(root, _DEFINITIONS)
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if whole or not isinstance(child, ast.stmt)]


def _root_name(decorator: ast.expr) -> str:
    while isinstance(decorator, (ast.Call, ast.Attribute)):
        decorator = decorator.func if isinstance(decorator, ast.Call) else decorator.value
    return decorator.id if isinstance(decorator, ast.Name) else ""

"""What of a candidate's text may run: its import, and the functions and classes that it or an entry point names. Torch-free."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FIELDS = ("body", "orelse", "finalbody", "handlers", "cases")


class Reachable:
    """
    A module without the functions and classes that nothing names which runs.

    A name counts wherever it stands: one that is bound twice reaches both definitions. What a string names is not followed, but a
    definition with a decorator of the module's own, which may keep it in a table, is reached.
    """

    def __init__(self, body: Iterable[ast.stmt], entry_points: Collection[str]) -> None:
        statements = [inner for statement in body for inner in _statements(statement)]
        definitions: dict[str, list[Definition]] = {}
        for statement in statements:
            if isinstance(statement, _DEFINITIONS):
                definitions.setdefault(statement.name, []).append(statement)
        waiting: list[ast.stmt] = [one for one in statements if not isinstance(one, _DEFINITIONS)]
        for name, alike in list(definitions.items()):
            kept = any(_root(one) in definitions for definition in alike for one in definition.decorator_list)
            if kept or name in entry_points or name.startswith("__"):
                waiting += definitions.pop(name)
        self._reached: list[ast.stmt] = []
        while waiting:
            root = waiting.pop()
            self._reached.append(root)
            for node in _own_nodes(root):
                if isinstance(node, ast.Name):
                    waiting += definitions.pop(node.id, ())

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """Functions and classes of the module's own level."""
        return tuple(one for one in self._reached if isinstance(one, _DEFINITIONS))

    def nodes(self) -> Iterator[ast.AST]:
        """All nodes that may run."""
        for root in self._reached:
            yield from _own_nodes(root)


def _statements(statement: ast.AST) -> Iterator[ast.stmt]:
    """A statement of a module's own level with those in its branches."""
    if isinstance(statement, ast.stmt):
        yield statement
    if not isinstance(statement, _DEFINITIONS):
        for field in _FIELDS:
            for inner in getattr(statement, field, ()):
                yield from _statements(inner)


def _own_nodes(root: ast.stmt) -> Iterator[ast.AST]:
    """All nodes of a definition; of another statement those that belong to no statement inside it."""
    waiting: list[ast.AST] = [root]
    while waiting:
        node = waiting.pop()
        yield node
        children = ast.iter_child_nodes(node)
        whole = isinstance(root, _DEFINITIONS)
        waiting += [child for child in children if whole or not isinstance(child, ast.stmt)]


def _root(decorator: ast.expr) -> str:
    while isinstance(decorator, (ast.Call, ast.Attribute)):
        decorator = decorator.func if isinstance(decorator, ast.Call) else decorator.value
    return decorator.id if isinstance(decorator, ast.Name) else ""

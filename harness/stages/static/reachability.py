"""Parts of a candidate's text that may run: its import, and the functions and classes that its import or an entry point names."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FIELDS = ("body", "orelse", "finalbody", "handlers", "cases")


def reachable_statements(body: Iterable[ast.stmt], entry_points: Collection[str]) -> Iterator[ast.stmt]:
    """Statements of a module without the functions and classes that no running code names.

    A name counts wherever it occurs; a name that is bound twice reaches both definitions. Names in strings are not followed. But
    a definition is reached if one of the module's own functions decorates it, because the decorator may keep it in a table.
    """
    definitions: dict[str, list[Definition]] = {}
    waiting: list[ast.stmt] = []
    for statement in (inner for outer in body for inner in statements_in(outer)):
        if isinstance(statement, DEFINITIONS):
            definitions.setdefault(statement.name, []).append(statement)
        else:
            waiting.append(statement)
    for name, same_name in list(definitions.items()):
        decorators = [decorator for definition in same_name for decorator in definition.decorator_list]
        kept = any(_root_name(decorator) in definitions for decorator in decorators)
        if kept or name in entry_points or name.startswith("__"):
            waiting += definitions.pop(name)
    while waiting:
        statement = waiting.pop()
        yield statement
        for node in own_nodes(statement):
            if isinstance(node, ast.Name):
                waiting += definitions.pop(node.id, ())


def statements_in(node: ast.AST) -> Iterator[ast.stmt]:
    """A statement or module with all statements in its branches, in their order, without the insides of definitions."""
    if isinstance(node, ast.stmt):
        yield node
    if not isinstance(node, DEFINITIONS):
        for field in _FIELDS:
            for inner in getattr(node, field, ()):
                yield from statements_in(inner)


def own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """All nodes of a definition; for another statement its nodes without the statements inside it."""
    waiting: list[ast.AST] = [statement]
    whole = isinstance(statement, DEFINITIONS)
    while waiting:
        node = waiting.pop()
        yield node
        children = ast.iter_child_nodes(node)
        waiting += [child for child in children if whole or not isinstance(child, ast.stmt)]


def _root_name(decorator: ast.expr) -> str:
    while isinstance(decorator, (ast.Call, ast.Attribute)):
        decorator = decorator.func if isinstance(decorator, ast.Call) else decorator.value
    return decorator.id if isinstance(decorator, ast.Name) else ""

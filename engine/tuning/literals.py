"""Finds the numbers in the source that determine a value: at the launch, or where its names are assigned."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

from .launches import Launch, Scope, binds, constant, dictionary

DEPTH = 6
"""Longest chain of names and calls that is followed from a launch."""


def literals(value: ast.expr, scope: Scope, tree: ast.Module, depth: int = DEPTH) -> Iterator[ast.Constant]:
    """Yield the integers that determine a value and nothing else, in the order of the text.

    These expressions are followed:

    - names with one assignment
    - entries of a literal dictionary
    - both branches of a conditional expression
    - the arguments of `min`, and the arguments of `max` that are not literals
    - helper functions of the module that only return

    A value computed from sizes, such as `next_power_of_2(columns)`, has none: changing it would change the
    computation.
    """
    if depth == 0:
        return
    match value:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            yield value
        case ast.IfExp(body=body, orelse=otherwise):
            yield from literals(body, scope, tree, depth - 1)
            yield from literals(otherwise, scope, tree, depth - 1)
        case ast.Name(id=name):
            home: Scope = scope if binds(scope, name) else tree
            assigned = constant(home, name)
            if assigned is not None:
                yield from literals(assigned, home, tree, depth - 1)
        case ast.Subscript(value=entries, slice=ast.Constant(value=str() as key)):
            entry = (dictionary(entries, scope, tree) or {}).get(key)
            if entry is not None:
                yield from literals(entry, scope, tree, depth - 1)
        case ast.Call(func=ast.Name(id="min"), args=arguments, keywords=[]):
            for argument in arguments:
                yield from literals(argument, scope, tree, depth - 1)
        case ast.Call(func=ast.Name(id="max"), args=arguments, keywords=[]):
            for argument in arguments:
                if not isinstance(argument, ast.Constant):
                    yield from literals(argument, scope, tree, depth - 1)
        case ast.Call(func=ast.Name(id=name)):
            helper = _helper(tree, name)
            if helper is not None:
                for statement in helper.body:
                    if isinstance(statement, ast.Return) and statement.value is not None:
                        yield from literals(statement.value, helper, tree, depth - 1)
        case _:
            return


def in_grid(launch: Launch, numbers: Container[object], tree: ast.Module) -> tuple[ast.Constant, ...]:
    """Returns the places in a launch's grid where one of these numbers is written: they must change together."""
    grid = launch.grid
    if isinstance(grid, ast.Name):
        home: Scope = launch.scope if binds(launch.scope, grid.id) else tree
        grid = constant(home, grid.id) or grid
    return tuple(
        node
        for node in ast.walk(grid)
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value in numbers
    )


def _helper(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    """A plain function of the module with nothing but `return` in its body."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name and not node.decorator_list:
            plain = all(
                isinstance(statement, ast.Return)
                or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
                for statement in node.body
            )
            return node if plain else None
    return None

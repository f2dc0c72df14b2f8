"""Where the numbers stand that a value is made of: at the launch itself, or where the names in it were given theirs."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

from .launches import Launch, Scope, binds, constant

DEPTH = 6
"""Names and calls that are followed from a launch."""


def literals(value: ast.expr, scope: Scope, tree: ast.Module, depth: int = DEPTH) -> Iterator[ast.Constant]:
    """Whole numbers that decide a value, which stand for nothing else in it, in the order of the text.

    Followed are names that are given a value once, both branches of a conditional expression, the bound of a `min`,
    what a `max` lets through, and helper functions of the module that only return. What is worked out from sizes, as
    `next_power_of_2(columns)`, holds none: to change it changes what the kernel computes.
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
            given = constant(home, name)
            if given is not None:
                yield from literals(given, home, tree, depth - 1)
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
    """Where a launch's grid is worked out with one of these numbers written out, so that both must change together."""
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
    """A plain function of the module that does nothing but return."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name and not node.decorator_list:
            plain = all(
                isinstance(one, ast.Return)
                or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
                for one in node.body
            )
            return node if plain else None
    return None

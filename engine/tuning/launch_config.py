"""The configuration of a kernel file: the constants and options that its launches set, and the numbers that determine them."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

from engine.reply.module_text import parse_module

from .launches import (
    LaunchedKernel,
    LaunchSite,
    Scope,
    binds,
    constant,
    dictionary,
    launched_kernels,
)

Config = dict[str, int | str | None]
"""Values by name; with several kernels the name is `KERNEL NAME`, as the name of a knob."""


def launch_config(source: str) -> Config:
    """Returns the configuration of a module. Values that depend on sizes are left out, and so are those that launches give
    differently.
    """
    tree = parse_module(source)
    kernels = launched_kernels(tree) if tree is not None else ()
    config: Config = {}
    for kernel in kernels:
        before = f"{kernel.name} " if len(kernels) > 1 else ""
        values: dict[str, set[int | str | None]] = {}
        for name, value in _written(kernel, tree or ast.Module([], [])):
            values.setdefault(name, set()).add(value)
        config |= {
            before + name: next(iter(distinct)) for name, distinct in values.items() if len(distinct) == 1
        }
    return config


def _written(kernel: LaunchedKernel, tree: ast.Module) -> Iterator[tuple[str, int | str | None]]:
    """Yield each constant and option with a plain value, once for each launch; the only autotune config counts as a launch."""
    parameters = {parameter.arg for parameter in kernel.function.args.args} - set(kernel.constants)
    configs = kernel.configs.elts if kernel.configs is not None else []
    if len(configs) == 1 and isinstance(configs[0], ast.Call) and configs[0].args:
        config = configs[0]
        entries = (dictionary(config.args[0], tree, tree) or {}) | {
            keyword.arg: keyword.value for keyword in config.keywords if keyword.arg is not None
        }
        yield from _plain(entries, tree, tree)
    for launch in kernel.launches:
        entries = {name: value for name, value in launch.arguments.items() if name not in parameters}
        yield from _plain(entries, launch.scope, tree)


def _plain(
    entries: dict[str, ast.expr], scope: Scope, tree: ast.Module
) -> Iterator[tuple[str, int | str | None]]:
    for name, entry in entries.items():
        match _followed(entry, scope, tree):
            case ast.Constant(value=bool()):
                continue
            case ast.Constant(value=(int() | str() | None) as value):
                yield name, value
            case _:
                continue


def _followed(value: ast.expr, scope: Scope, tree: ast.Module) -> ast.expr | None:
    """The expression that names and entries of dictionaries lead to."""
    reached: ast.expr | None = value
    for _ in range(DEPTH):
        match reached:
            case ast.Name(id=name):
                home: Scope = scope if binds(scope, name) else tree
                reached, scope = constant(home, name), home
            case ast.Subscript(value=entries, slice=ast.Constant(value=str() as key)):
                reached = (dictionary(entries, scope, tree) or {}).get(key)
            case _:
                return reached
    return None


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


def in_grid(launch: LaunchSite, numbers: Container[object], tree: ast.Module) -> tuple[ast.Constant, ...]:
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

"""The configuration of a kernel file: the constants and options that the text of its launches sets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.reply.module_text import parse_module

from .launches import Kernel, Scope, binds, constant, dictionary, launched_kernels
from .literals import DEPTH

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


def _written(kernel: Kernel, tree: ast.Module) -> Iterator[tuple[str, int | str | None]]:
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

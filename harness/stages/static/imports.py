"""Resolves the names of a module: imports, plain aliases, and modules that `importlib` loads by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suites.source.package import Package, absolute_name

IMPORT_MODULE = "importlib.import_module"
_FIND, _MAKE = "importlib.util.find_spec", "importlib.util.module_from_spec"
_KERNEL_FUNCTIONS = "triton.language."
"""Modules with functions for kernels, which a candidate may load in any way."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def imported_names(tree: ast.Module, package: Package | None = None) -> dict[str, str]:
    """Imported names with their meaning: `tl` -> `triton.language`; follows plain aliases (`F = torch.nn.functional`).

    Relative imports are those of a module of `package`.
    """
    parent = package.parent if package is not None else ""
    meaning: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                meaning[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and (module := absolute_name(node, parent)):
            for alias in node.names:
                meaning[alias.asname or alias.name] = f"{module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            path = dotted(node.value, meaning)
            if path is not None:
                meaning.setdefault(node.targets[0].id, path)
    return meaning


def dotted(node: ast.expr, imported: dict[str, str]) -> str | None:
    """`torch.nn.functional.softmax` for `F.softmax`; `None` if the root is no imported module."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    root = imported.get(node.id) if isinstance(node, ast.Name) else module_of_call(node, imported)
    return None if root is None else ".".join([root, *reversed(parts)])


def module_of_call(node: ast.expr, imported: dict[str, str]) -> str | None:
    """`numpy` for `importlib.import_module("numpy")`; `None` for all other expressions."""
    match node:
        case ast.Call(func=function, args=[ast.Constant(value=str(name))], keywords=[]):
            return name if dotted(function, imported) == IMPORT_MODULE else None
        case _:
            return None


def followed_imports(tree: ast.Module, imported: dict[str, str]) -> frozenset[ast.AST]:
    """Functions of calls that import a module by its name and that this check can follow, with the names inside.

    `importlib.import_module`: the name is a literal, or only the module's `__version__` is read.
    `importlib.util.module_from_spec`: all names that the function looks for are literals, of modules of `triton.language`.
    """
    followed: set[ast.AST] = set()
    for scope in (tree, *(node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS))):
        nodes = list(ast.walk(scope))
        of_version = set(_version_sources(nodes))
        loads = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
        outer = {
            name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
        }
        read_elsewhere = outer | {load.id for load in loads if load not in of_version}
        for node in nodes:
            match node:
                case ast.Call() if node in of_version or module_of_call(node, imported) is not None:
                    calls = [node]
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                    # The name of a variable of the module may be read by every function.
                    calls = [] if name in read_elsewhere else [call]
                case _:
                    calls = []
            for call in calls:
                if dotted(call.func, imported) == IMPORT_MODULE:
                    followed.update(ast.walk(call.func))
        if scope is not tree and _finds_kernel_functions(nodes, imported):
            makers = (node for node in nodes if isinstance(node, ast.Attribute))
            followed.update(maker for maker in makers if dotted(maker, imported) == _MAKE)
    return frozenset(followed)


def _finds_kernel_functions(nodes: list[ast.AST], imported: dict[str, str]) -> bool:
    """True if each call of `importlib.util.find_spec` gets a literal name, or each of a list of them, from `triton.language`."""
    lists: dict[str, ast.expr] = {}
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Tuple() | ast.List() as value):
                lists[name] = value
            case _:
                pass
    loops: dict[str, ast.expr] = {}
    for node in nodes:
        match node:
            case ast.For(target=ast.Name(id=name), iter=ast.Name(id=values)):
                loops[name] = lists.get(values, node.iter)
            case ast.For(target=ast.Name(id=name), iter=values):
                loops[name] = values
            case _:
                pass
    names: list[ast.expr] = []
    for node in nodes:
        match node:
            case ast.Call(func=function, args=[argument]) if dotted(function, imported) == _FIND:
                values = loops.get(argument.id, argument) if isinstance(argument, ast.Name) else argument
                names += values.elts if isinstance(values, ast.Tuple | ast.List) else [values]
            case _:
                pass
    return bool(names) and all(
        isinstance(name, ast.Constant) and str(name.value).startswith(_KERNEL_FUNCTIONS) for name in names
    )


def _version_sources(nodes: list[ast.AST]) -> Iterator[ast.expr]:
    """Expressions of which only `__version__` is read."""
    for node in nodes:
        match node:
            case ast.Attribute(value=value, attr="__version__"):
                yield value
            case ast.Call(
                func=ast.Name(id="getattr" | "hasattr"), args=[value, ast.Constant(value="__version__"), *_]
            ):
                yield value
            case _:
                pass

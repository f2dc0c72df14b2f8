"""Finds the kernels of a module and their launches in its syntax tree; no code runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.reply.module_text import decorator_name, is_kernel

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
"""The place where a name is looked up: a function, or the module."""


@dataclass(slots=True)
class LaunchSite:
    """One `kernel[grid](...)` in the text."""

    call: ast.Call
    grid: ast.expr
    scope: Scope
    """The innermost function around it, or the module."""
    arguments: dict[str, ast.expr]
    """Arguments by parameter or launch option; without arguments from `*`, and from `**` only those that
    `dictionary` knows."""
    open: bool
    """True if `**` passes arguments that the text does not name."""


@dataclass(slots=True)
class LaunchedKernel:
    """One `@triton.jit` function that the module launches."""

    name: str
    function: ast.FunctionDef
    constants: tuple[str, ...]
    """Parameters marked `tl.constexpr`."""
    configs: ast.List | None
    """The literal list of `triton.autotune`."""
    autotuned: bool
    config_options: frozenset[str]
    """Names that the configs set, also `num_warps` and similar options."""
    loops: bool
    """True if it, or a kernel function that it calls, has a loop."""
    dots: bool
    """True if it, or a kernel function that it calls, has a matrix product."""
    launches: list[LaunchSite] = field(default_factory=list)


def launched_kernels(tree: ast.Module) -> tuple[LaunchedKernel, ...]:
    """Returns the kernels that the module launches, in the order of their definitions."""
    functions = {
        node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and is_kernel(node)
    }
    kernels = {name: _kernel(tree, function, functions) for name, function in functions.items()}
    for launch, name, arguments in _calls(tree):
        kernel = kernels.get(name)
        if kernel is not None:
            launch.arguments = _bound(kernel.function, arguments)
            for keyword in arguments.keywords:
                unpacked = dictionary(keyword.value, launch.scope, tree) if keyword.arg is None else {}
                launch.open |= unpacked is None
                launch.arguments |= unpacked or {}
            kernel.launches.append(launch)
    return tuple(kernel for kernel in kernels.values() if kernel.launches)


def _calls(tree: ast.Module) -> Iterator[tuple[LaunchSite, str, ast.Call]]:
    """Yield the calls `name[grid](...)` in the order of the text, each with its scope."""
    pending: list[tuple[ast.AST, Scope]] = [(tree, tree)]
    while pending:  # no recursion: a sum of a thousand terms is a thousand levels deep
        node, scope = pending.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            kernel = node.func.value
            if isinstance(kernel, ast.Name):
                yield LaunchSite(node, node.func.slice, scope, {}, open=False), kernel.id, node
        inner = node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else scope
        pending += [(child, inner) for child in reversed(list(ast.iter_child_nodes(node)))]


def _bound(function: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr]:
    parameters = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]
    bound: dict[str, ast.expr] = {}
    for name, argument in zip(parameters, call.args, strict=False):
        if isinstance(argument, ast.Starred):
            break
        bound[name] = argument
    return bound | {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}


def _kernel(
    tree: ast.Module, function: ast.FunctionDef, functions: dict[str, ast.FunctionDef]
) -> LaunchedKernel:
    reached = _reached(function, functions)
    nodes = [node for called in reached for node in ast.walk(called)]
    tuning = next((mark for mark in function.decorator_list if decorator_name(mark) == "autotune"), None)
    configs = _configs(tree, tuning)
    return LaunchedKernel(
        name=function.name,
        function=function,
        constants=tuple(
            parameter.arg for parameter in _parameters(function) if _is_constexpr(parameter.annotation)
        ),
        configs=configs,
        autotuned=tuning is not None,
        config_options=_options_of(configs),
        loops=any(isinstance(node, (ast.For, ast.While)) for node in nodes),
        dots=any(isinstance(node, ast.Attribute) and node.attr in {"dot", "dot_scaled"} for node in nodes),
    )


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.arg]:
    return (node for node in ast.walk(function.args) if isinstance(node, ast.arg))


def _reached(function: ast.FunctionDef, functions: dict[str, ast.FunctionDef]) -> list[ast.FunctionDef]:
    """The function and the kernel functions of the module that it calls, also indirectly."""
    reached = [function]
    for caller in reached:
        names = {node.id for node in ast.walk(caller) if isinstance(node, ast.Name)}
        reached += [callee for name, callee in functions.items() if name in names and callee not in reached]
    return reached


def _is_constexpr(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Constant):
        return isinstance(annotation.value, str) and annotation.value.endswith("constexpr")
    return annotation is not None and decorator_name(annotation) == "constexpr"


def _configs(tree: ast.Module, tuning: ast.expr | None) -> ast.List | None:
    """The literal list of configs, at the decorator or assigned once at the top of the module."""
    if not isinstance(tuning, ast.Call):
        return None
    written = next((keyword.value for keyword in tuning.keywords if keyword.arg == "configs"), None)
    value = written if written is not None else next(iter(tuning.args), None)
    if isinstance(value, ast.Name):
        value = constant(tree, value.id)
    if not isinstance(value, ast.List) or any(isinstance(config, ast.Starred) for config in value.elts):
        return None
    return value


def _options_of(configs: ast.List | None) -> frozenset[str]:
    if configs is None:
        return frozenset()
    keywords = {
        keyword.arg for node in ast.walk(configs) if isinstance(node, ast.Call) for keyword in node.keywords
    }
    keys = {
        key.value
        for node in ast.walk(configs)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant)
    }
    return frozenset(name for name in keywords | keys if isinstance(name, str))


def constant(scope: Scope, name: str) -> ast.expr | None:
    """Returns the value of a name that a scope assigns exactly once; `None` otherwise."""
    nodes = list(own_nodes(scope))
    stored = [
        node
        for node in nodes
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]
    if len(stored) != 1 or any(_claims(node, name) for node in nodes):
        return None
    for node in nodes:
        if isinstance(node, ast.Assign):
            pairs = [pair for target in node.targets for pair in _assigned(target, node.value)]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs = [(node.target, node.value)]
        else:
            continue
        for target, value in pairs:
            if target is stored[0]:
                return value
    return None


def dictionary(value: ast.expr, scope: Scope, tree: ast.Module) -> dict[str, ast.expr] | None:
    """Returns the entries of a literal dictionary, or of a name that is assigned one and only read after that.

    `None` for any other value: its entries may differ from the text.
    """
    if isinstance(value, ast.Name):
        assigned = constant(scope if binds(scope, value.id) else tree, value.id)
        uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == value.id]
        reads = {
            id(inner)
            for node in ast.walk(tree)
            for inner in (
                [keyword.value for keyword in node.keywords if keyword.arg is None]
                if isinstance(node, ast.Call)
                else [node.value]
                if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
                else []
            )
        }
        if assigned is None or any(id(use) not in reads for use in uses if isinstance(use.ctx, ast.Load)):
            return None
        return None if isinstance(assigned, ast.Name) else dictionary(assigned, scope, tree)
    if not isinstance(value, ast.Dict):
        return None
    keys = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
    entries = {key: entry for key, entry in zip(keys, value.values, strict=True) if isinstance(key, str)}
    return entries if len(entries) == len(keys) else None


def binds(scope: Scope, name: str) -> bool:
    """True if a scope binds a name, as a parameter or by an assignment."""
    if not isinstance(scope, ast.Module) and any(parameter.arg == name for parameter in _parameters(scope)):
        return True
    return any(
        isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
        for node in own_nodes(scope)
    )


def own_nodes(scope: Scope) -> Iterator[ast.AST]:
    """Yield the nodes of a scope in order, without the nodes of functions and classes in it."""
    pending: list[ast.AST] = list(reversed(scope.body))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending.extend(reversed(list(ast.iter_child_nodes(node))))


def _claims(node: ast.AST, name: str) -> bool:
    """True if a node of a scope declares the name, or is a function or class that has or changes it."""
    declares = isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return declares
    return node.name == name or any(
        isinstance(inner, (ast.Global, ast.Nonlocal)) and name in inner.names for inner in ast.walk(node)
    )


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each name of an assignment with its own value, as far as the text pairs them."""
    sequences = (ast.Tuple, ast.List)
    if isinstance(target, sequences) and isinstance(value, sequences) and len(target.elts) == len(value.elts):
        for element, part in zip(target.elts, value.elts, strict=True):
            yield from _assigned(element, part)
    else:
        yield target, value

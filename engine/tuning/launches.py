"""Finds the kernels of a module and their launches in its syntax tree; no code runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.reply.module_text import decorator_name, is_kernel

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
"""The place where a name is looked up: a function, or the module."""


@dataclass(slots=True)
class Launch:
    """One `kernel[grid](...)` in the text."""

    call: ast.Call
    grid: ast.expr
    scope: Scope
    """The innermost function around it, or the module."""
    arguments: dict[str, ast.expr]
    """Arguments by parameter or launch option; without arguments from `*` or `**`."""
    open: bool
    """True if `**` passes arguments that the text does not name."""


@dataclass(slots=True)
class Kernel:
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
    launches: list[Launch] = field(default_factory=list)


def launched_kernels(tree: ast.Module) -> tuple[Kernel, ...]:
    """Returns the kernels that the module launches, in the order of their definitions."""
    functions = {
        node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and is_kernel(node)
    }
    kernels = {name: _kernel(tree, function, functions) for name, function in functions.items()}
    for launch, name, arguments in _calls(tree):
        kernel = kernels.get(name)
        if kernel is not None:
            launch.arguments = _bound(kernel.function, arguments)
            kernel.launches.append(launch)
    return tuple(kernel for kernel in kernels.values() if kernel.launches)


def _calls(tree: ast.Module) -> Iterator[tuple[Launch, str, ast.Call]]:
    """Yield the calls `name[grid](...)` in the order of the text, each with its scope."""
    pending: list[tuple[ast.AST, Scope]] = [(tree, tree)]
    while pending:  # no recursion: a sum of a thousand terms is a thousand levels deep
        node, scope = pending.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            kernel = node.func.value
            if isinstance(kernel, ast.Name):
                unnamed = any(keyword.arg is None for keyword in node.keywords)
                yield Launch(node, node.func.slice, scope, {}, unnamed), kernel.id, node
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


def _kernel(tree: ast.Module, function: ast.FunctionDef, functions: dict[str, ast.FunctionDef]) -> Kernel:
    reached = _reached(function, functions)
    nodes = [node for called in reached for node in ast.walk(called)]
    tuning = next((mark for mark in function.decorator_list if decorator_name(mark) == "autotune"), None)
    configs = _configs(tree, tuning)
    return Kernel(
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


def _parameters(function: ast.FunctionDef) -> Iterator[ast.arg]:
    yield from function.args.posonlyargs
    yield from function.args.args
    yield from function.args.kwonlyargs


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
    values: list[ast.expr | None] = []
    for node in own_nodes(scope):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    values += _assigned(target, value, name)
            case ast.AnnAssign(target=ast.Name(id=bound), value=value) if bound == name:
                values.append(value)
            case ast.Name(id=bound, ctx=ast.Store()) if bound == name:
                values.append(None)
            case ast.Global(names=names) | ast.Nonlocal(names=names) if name in names:
                return None
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if _claims(node, name):
                return None
            case _:
                continue
    # Each assignment appears twice: as the statement, and as the name that is stored.
    assigned = [value for value in values if value is not None]
    return assigned[0] if len(assigned) == 1 and len(values) == 2 else None


def binds(scope: Scope, name: str) -> bool:
    """True if a scope binds a name, as a parameter or by an assignment."""
    if not isinstance(scope, ast.Module):
        arguments = scope.args
        parameters = (
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            *(variadic for variadic in (arguments.vararg, arguments.kwarg) if variadic is not None),
        )
        if any(parameter.arg == name for parameter in parameters):
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


def _claims(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, name: str) -> bool:
    """True if a function or class has this name, or changes this name of the scope around it."""
    return node.name == name or any(
        isinstance(inner, (ast.Global, ast.Nonlocal)) and name in inner.names for inner in ast.walk(node)
    )


def _assigned(target: ast.expr, value: ast.expr, name: str) -> list[ast.expr | None]:
    """The values that an assignment gives a name; `None` for a value that cannot be traced."""
    if isinstance(target, ast.Name):
        return [value] if target.id == name else []
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            return [
                assigned
                for element, part in zip(target.elts, value.elts, strict=True)
                for assigned in _assigned(element, part, name)
            ]
        if any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target)):
            return [None]
    return []

"""Entry points with their signatures, from the syntax tree of a reference."""

from __future__ import annotations

import ast

from suites.public.syntax.outline import Outline
from suites.public.task import EntryKind, EntryPoint


def entry_point(outline: Outline, name: str) -> EntryPoint:
    """Return the entry point `name` of a module, with its signature."""
    definition = outline.definition(name)
    if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        kind = EntryKind.KERNEL if outline.is_kernel(name) else EntryKind.FUNCTION
        return EntryPoint(name, kind, f"{name}({ast.unparse(definition.args)})")
    if isinstance(definition, ast.ClassDef):
        return EntryPoint(name, EntryKind.CLASS, _class_signature(definition, name))
    value = definition.value if definition is not None else None
    if isinstance(value, ast.Attribute) and value.attr == "apply" and isinstance(value.value, ast.Name):
        of = outline.definition(value.value.id)
        if isinstance(of, ast.ClassDef):
            return EntryPoint(
                name, EntryKind.VALUE, _class_signature(of, name).replace(f"{name}.apply", name)
            )
    return EntryPoint(name, EntryKind.VALUE)


def _class_signature(definition: ast.ClassDef, name: str) -> str:
    methods = {method.name: method for method in definition.body if isinstance(method, ast.FunctionDef)}
    forward = methods.get("forward")
    first = [argument.arg for argument in forward.args.args[:1]] if forward else []
    if forward is not None and first == ["ctx"]:
        return f"{name}.apply({_without_first(forward)})"
    return f"{name}({_without_first(methods['__init__'])})" if "__init__" in methods else ""


def _without_first(method: ast.FunctionDef) -> str:
    arguments = method.args
    plain = ast.arguments(
        posonlyargs=arguments.posonlyargs,
        args=arguments.args[1:],
        vararg=arguments.vararg,
        kwonlyargs=arguments.kwonlyargs,
        kw_defaults=arguments.kw_defaults,
        kwarg=arguments.kwarg,
        defaults=arguments.defaults,
    )
    return ast.unparse(plain)

"""Compares the signature of a candidate's function with the task's. Torch-free."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import msgspec

from suites.source.python_source import parse_literal
from suites.source.signature import parse_signature


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a function."""

    name: str
    default: str | None = None
    """As Python prints it; `None` if there is none."""
    by_name: bool = True
    """Whether a caller may pass it by name."""


def definition_parameters(definition: ast.FunctionDef) -> tuple[Parameter, ...]:
    """Return the parameters of a definition in order, without `*args` and `**kwargs`."""
    arguments = definition.args
    positional = [*arguments.posonlyargs, *arguments.args]
    without_default = len(positional) - len(arguments.defaults)
    defaults = [*[None] * without_default, *arguments.defaults, *arguments.kw_defaults]
    return tuple(
        Parameter(
            argument.arg,
            None if default is None else ast.unparse(default),
            by_name=argument not in arguments.posonlyargs,
        )
        for argument, default in zip([*positional, *arguments.kwonlyargs], defaults, strict=True)
    )


def signature_error(signature: str, parameters: Sequence[Parameter]) -> str:
    """Return why a caller who knows the task's `signature` cannot call a function with these parameters; empty if it can.

    Additional parameters at the end are allowed if they have defaults.
    """
    wanted = parse_signature(signature)
    names = [parameter.name for parameter in parameters]
    for place, name in enumerate(wanted.parameters):
        if place >= len(parameters) or (name in wanted.by_name and name not in names):
            return f"parameter `{name}` is missing"
        default = wanted.defaults.get(name)
        parameter = parameters[names.index(name) if name in wanted.by_name else place]
        if parameter.name != name:
            return f"parameter {place + 1} is called `{parameter.name}`, not `{name}`"
        if not parameter.by_name:
            return f"parameter `{name}` cannot be passed by name"
        if default is None:
            continue
        if parameter.default is None:
            return f"parameter `{name}` has no default; it must be {default}"
        if not _is_same_value(default, parameter.default):
            return f"parameter `{name}` defaults to {parameter.default}, not {default}"
    for extra in parameters:
        if extra.default is None and extra.name not in wanted.parameters:
            return f"parameter `{extra.name}` is one too many"
    return ""


def _is_same_value(wanted: str, actual: str) -> bool:
    """Also true if a default is no literal: then the call decides."""
    try:
        return bool(parse_literal(wanted) == parse_literal(actual))
    except (ValueError, SyntaxError):
        return True

"""Signatures of entry points: what a task asks for, and how a candidate's differs. Torch-free."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import msgspec


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a function."""

    name: str
    default: str | None = None
    """As Python prints it; `None` when there is none."""
    by_name: bool = True
    """Whether a caller may pass it by name."""


def parse(signature: str) -> tuple[Parameter, ...]:
    """Parameters of a signature as `layer_norm(x, weight, eps=1e-5)`; `ValueError` when it is none."""
    try:
        body = ast.parse(f"def {signature}: ...").body
    except SyntaxError as error:
        raise ValueError(f"not a signature: {signature}") from error
    definition = body[0]
    assert isinstance(definition, ast.FunctionDef)
    return of_definition(definition)


def of_definition(definition: ast.FunctionDef) -> tuple[Parameter, ...]:
    """Parameters of a definition, in order; `*args` and `**kwargs` are left out."""
    arguments = definition.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(
        arguments.defaults
    )
    found = [
        Parameter(one.arg, _printed(default), by_name=one not in arguments.posonlyargs)
        for one, default in zip(positional, defaults, strict=True)
    ]
    found += [
        Parameter(one.arg, _printed(default))
        for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return tuple(found)


def difference(wanted: Sequence[Parameter], got: Sequence[Parameter]) -> str:
    """What is wrong with `got`, for people; empty when a caller who knows `wanted` can call it.

    More parameters after the wanted ones are fine when they have defaults.
    """
    for place, parameter in enumerate(wanted):
        if place >= len(got):
            return f"parameter `{parameter.name}` is missing"
        other = got[place]
        if other.name != parameter.name:
            return f"parameter {place + 1} is called `{other.name}`, not `{parameter.name}`"
        if not other.by_name:
            return f"parameter `{other.name}` cannot be passed by name"
        if parameter.default is None:
            continue
        if other.default is None:
            return f"parameter `{parameter.name}` has no default; it must be {parameter.default}"
        if not _same(parameter.default, other.default):
            return f"parameter `{parameter.name}` defaults to {other.default}, not {parameter.default}"
    for extra in got[len(wanted) :]:
        if extra.default is None:
            return f"parameter `{extra.name}` is one too many"
    return ""


def _printed(default: ast.expr | None) -> str | None:
    return None if default is None else ast.unparse(default)


def _same(wanted: str, got: str) -> bool:
    """Whether two printed defaults are the same value; what is no literal is left to the call."""
    try:
        return bool(ast.literal_eval(wanted) == ast.literal_eval(got))
    except (ValueError, SyntaxError):
        return True

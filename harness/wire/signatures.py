"""How the signature of a candidate's function differs from what its task asks for. Torch-free."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import msgspec

from suites.signature import parse_signature


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a function."""

    name: str
    default: str | None = None
    """As Python prints it; `None` when there is none."""
    by_name: bool = True
    """Whether a caller may pass it by name."""


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


def difference(signature: str, got: Sequence[Parameter]) -> str:
    """What is wrong with `got`, for people; empty when a caller who knows the task's `signature` can call it.

    More parameters after the wanted ones are fine when they have defaults.
    """
    wanted = parse_signature(signature)
    for place, name in enumerate(wanted.parameters):
        if place >= len(got):
            return f"parameter `{name}` is missing"
        other, default = got[place], wanted.defaults.get(name)
        if other.name != name:
            return f"parameter {place + 1} is called `{other.name}`, not `{name}`"
        if not other.by_name:
            return f"parameter `{name}` cannot be passed by name"
        if default is None:
            continue
        if other.default is None:
            return f"parameter `{name}` has no default; it must be {default}"
        if not _same(default, other.default):
            return f"parameter `{name}` defaults to {other.default}, not {default}"
    for extra in got[len(wanted.parameters) :]:
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

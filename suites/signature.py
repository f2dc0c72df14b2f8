"""Signatures of entry points as `task.toml` writes them."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signature:
    """One parsed signature."""

    name: str
    parameters: tuple[str, ...]
    required: tuple[str, ...]
    """Those without a default."""


def parse_signature(text: str) -> Signature:
    """The signature that `layer_norm(x, weight, eps=1e-5)` writes; `ValueError` says what it cannot be.

    Only plain parameters are allowed: a judge calls by name, and a kernel's caller by place.
    """
    try:
        body = ast.parse(f"def {text}: ...").body
    except SyntaxError:
        raise ValueError(f"{text!r} is no signature; write it as `name(x, y, eps=1e-5)`") from None
    definition = body[0] if len(body) == 1 else None
    if not isinstance(definition, ast.FunctionDef) or "\n" in text:
        raise ValueError(f"{text!r} is no signature; write it as `name(x, y, eps=1e-5)`")
    arguments = definition.args
    if arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg:
        raise ValueError(f"{text!r} uses `*` or `/`; write plain parameters")
    for default in arguments.defaults:
        if not isinstance(_literal(default), int | float | bool | str | None):
            raise ValueError(f"{text!r}: the default {ast.unparse(default)} is no plain value")
    names = tuple(one.arg for one in arguments.args)
    return Signature(definition.name, names, names[: len(names) - len(arguments.defaults)])


def _literal(default: ast.expr) -> object:
    """The default's value; the expression itself where it is no literal."""
    try:
        return ast.literal_eval(default)
    except (ValueError, TypeError):
        return default

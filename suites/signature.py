"""Parser for the signatures of entry points in `task.toml`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from suites.python_source import parse_python


@dataclass(frozen=True, slots=True)
class Signature:
    """A parsed signature."""

    name: str
    parameters: tuple[str, ...]
    defaults: dict[str, str]
    """Default by parameter, as `ast.unparse` prints it; parameters without a default are absent."""

    @property
    def required(self) -> tuple[str, ...]:
        """Parameters without a default."""
        return tuple(name for name in self.parameters if name not in self.defaults)


def parse_signature(text: str) -> Signature:
    """Parse a signature such as `layer_norm(x, weight, eps=1e-5)`. Raises `ValueError` with the problem.

    Only plain parameters are allowed: the judge calls by name, and users of a kernel call by position.
    """
    refusal = f"{text!r} is no signature; write it as `name(x, y, eps=1e-5)`"
    try:
        body = parse_python(f"def {text}: ...").body
    except (SyntaxError, ValueError):
        raise ValueError(refusal) from None
    definition = body[0]
    if (
        not isinstance(definition, ast.FunctionDef)
        or definition.returns
        or len(body) + len(definition.body) > 2
    ):
        raise ValueError(refusal)
    if not text.isprintable() or "#" in text:
        raise ValueError(refusal)
    arguments = definition.args
    if arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg:
        raise ValueError(f"{text!r} uses `*` or `/`; write plain parameters")
    for default in arguments.defaults:
        if not isinstance(_literal(default), int | float | bool | str | None):
            raise ValueError(f"{text!r}: the default {ast.unparse(default)} is no plain value")
    names = tuple(argument.arg for argument in arguments.args)
    if len(set(names)) < len(names):
        raise ValueError(f"{text!r} is no signature: a parameter occurs twice")
    with_default = names[len(names) - len(arguments.defaults) :]
    defaults = dict(zip(with_default, map(ast.unparse, arguments.defaults), strict=True))
    return Signature(definition.name, names, defaults)


def _literal(default: ast.expr) -> object:
    """Return the value of a default; the expression itself if it is no literal."""
    try:
        return ast.literal_eval(default)
    except (ValueError, TypeError):
        return default

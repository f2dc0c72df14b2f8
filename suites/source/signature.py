"""Parser for the signatures of entry points in `task.toml`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from suites.source.python_source import parse_python


@dataclass(frozen=True, slots=True)
class Signature:
    """A parsed signature."""

    name: str
    parameters: tuple[str, ...]
    defaults: dict[str, str]
    """Default by parameter, as `ast.unparse` prints it; parameters without a default are absent."""
    by_name: tuple[str, ...] = ()
    """The last parameters, which can only be passed by name."""

    @property
    def required(self) -> tuple[str, ...]:
        """Parameters without a default."""
        return tuple(name for name in self.parameters if name not in self.defaults)

    @property
    def by_position(self) -> tuple[str, ...]:
        """Parameters that may be passed by position."""
        return self.parameters[: len(self.parameters) - len(self.by_name)]


def parse_signature(text: str) -> Signature:
    """Parse a signature such as `layer_norm(x, weight, eps=1e-5)`. Raises `ValueError` with the problem.

    Every parameter can be passed by name, because the judge calls by name.
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
    if arguments.posonlyargs or arguments.vararg or arguments.kwarg:
        raise ValueError(f"{text!r} uses `/`, `*args` or `**kwargs`; write plain parameters")
    by_name = tuple(argument.arg for argument in arguments.kwonlyargs)
    names = (*(argument.arg for argument in arguments.args), *by_name)
    with_default = names[len(arguments.args) - len(arguments.defaults) :]
    defaults = {
        name: default
        for name, default in zip(with_default, [*arguments.defaults, *arguments.kw_defaults], strict=True)
        if default is not None
    }
    for default in defaults.values():
        if not isinstance(_literal(default), int | float | bool | str | None):
            raise ValueError(f"{text!r}: the default {ast.unparse(default)} is no plain value")
    if len(set(names)) < len(names):
        raise ValueError(f"{text!r} is no signature: a parameter occurs twice")
    return Signature(
        definition.name, names, {name: ast.unparse(default) for name, default in defaults.items()}, by_name
    )


def _literal(default: ast.expr) -> object:
    """Return the value of a default; the expression itself if it is no literal."""
    try:
        return ast.literal_eval(default)
    except (ValueError, TypeError):
        return default

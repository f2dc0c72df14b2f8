"""Statements that call a class `Model` at the sizes of a benchmark's configs, for tests of the form `MODEL`."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from suites.public.syntax.outline import Outline, entry_point
from suites.source.python_source import parse_python

MOST_CONFIGS = 3
"""Configs of one task that are judged, in the order of its file."""

Arguments = dict[str, Any]


def call_configs(
    outline: Outline, inputs: str, configs: Iterable[tuple[Arguments, Arguments]], call: str
) -> list[str]:
    """Return statements that call a model once for each config.

    `inputs`: name of the module's function that makes the inputs. `configs`: arguments of `Model` and of this function.
    `call`: a `with` statement, in which `{inputs}` are the arguments of this function; `get_init_inputs()` gives the
    arguments of `Model`. All arguments are constants, so that sizes can become smaller.
    """
    init_parameters = _parameters(entry_point(outline, "Model").signature or "Model()")
    input_parameters = _parameters(entry_point(outline, inputs).signature)
    pairs = [
        (_arguments(init_parameters, init), _arguments(input_parameters, made)) for init, made in configs
    ]
    different = [pair for place, pair in enumerate(pairs) if pair not in pairs[:place]]
    blocks = []
    for init, made in different[:MOST_CONFIGS]:
        renamed = {name: f"input_{name}" for name in made if name in init and init[name] != made[name]}
        constants = init | {renamed.get(name, name): value for name, value in made.items()}
        lines = _constants(constants)
        init_arguments = ", ".join(f"{name}={name}" for name in init)
        input_arguments = ", ".join(f"{name}={renamed.get(name, name)}" for name in made)
        lines += ["", "", "def get_init_inputs():", f"    return dict({init_arguments})", ""]
        blocks.append("\n".join([*lines, call.replace("{inputs}", input_arguments)]))
    return blocks


def _constants(values: dict[str, Any]) -> list[str]:
    """Return assignments. The number of a list's items is written as such, because it must not become smaller."""
    lists = {name: items for name, items in values.items() if isinstance(items, list)}
    counts = {len(items): f"len({name})" for name, items in lists.items()}
    return [
        f"{name} = {counts[value] if name.startswith('num_') and value in counts else repr(value)}"
        for name, value in (lists | values).items()
    ]


def _parameters(signature: str) -> dict[str, Any]:
    """Return the parameters of a signature with their defaults; `None` if the default is no plain value."""
    function = parse_python(f"def {signature}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    defaults = [None] * (len(names) - len(arguments.defaults)) + [
        default.value if isinstance(default, ast.Constant) else None for default in arguments.defaults
    ]
    return dict(zip(names, defaults, strict=True))


def _arguments(parameters: dict[str, Any], config: Arguments) -> dict[str, Any]:
    """Return the config's arguments that have a parameter, and defaults that are integers, because they are sizes too."""
    sizes = {name: value for name, value in parameters.items() if type(value) is int}
    return sizes | {name: value for name, value in config.items() if name in parameters}

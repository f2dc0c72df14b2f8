"""The arguments of a call, and its outputs: without the parts that are no tensors, with the arguments that it wrote."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from harness.wire.messages.guest import Plain


def taking_parts(function: Callable[..., Any], names: Iterable[str]) -> Callable[..., Any]:
    """Return a function that takes inputs of these names, parts of its arguments: `kv[0]` is of a list, `kv(0)` of a tuple.

    `meta.lens` is an attribute of an object `meta`, of the class that annotates the parameter.
    """
    if all(map(str.isidentifier, names)):
        return function

    def call(*args: Any, **inputs: Any) -> Any:
        whole: dict[str, Any] = {}
        signs: dict[str, str] = {}
        for name, value in inputs.items():
            base, sign, part = re.split(r"([.\[(]|$)", name, maxsplit=1)
            if sign:
                signs[base] = sign
                whole.setdefault(base, {})[part if sign == "." else int(part[:-1])] = value
            else:
                whole[base] = value
        kinds, names = inspect.get_annotations(inspect.unwrap(function)), getattr(function, "__globals__", {})
        for name, sign in signs.items():
            parts = whole[name]
            if sign == ".":
                kind = names.get(kinds.get(name), kinds.get(name))
                whole[name] = (kind if isinstance(kind, type) else SimpleNamespace)(**parts)
            else:
                whole[name] = (list if sign == "[" else tuple)(parts[place] for place in sorted(parts))
        return function(*args, **whole)

    return call


def without_plain(value: Any, returns: Sequence[str]) -> tuple[Any, tuple[Plain, ...] | None]:
    """Return a result without the parts that have no name in `returns` (see `Task.returns`), and these parts or `None`."""
    if not returns:
        return value, ()
    parts = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    plain = tuple(part for part, name in zip(parts, returns, strict=False) if not name)
    if len(parts) != len(returns) or not all(isinstance(part, Plain | None) for part in plain):
        return value, None
    named = tuple(part for part, name in zip(parts, returns, strict=True) if name)
    return (named if len(named) > 1 else named[0] if named else None), plain


def with_changed_inputs(value: Any, changed: Sequence[str], arguments: Mapping[str, Any]) -> Any:
    """The outputs of a call that returned `value`, with the inputs that are outputs in their places.

    `changed` has by output the name of the input that becomes it, or an empty string for a new tensor. Inputs among the returned
    tensors do not count. A value with any other number than that of the new tensors stays as it is.
    """
    names = [name for name in changed if name]
    if not names or not arguments.keys() >= set(names):
        return value
    parts = () if value is None else tuple(value) if isinstance(value, (tuple, list)) else (value,)
    returned = [part for part in parts if not any(part is arguments[name] for name in names)]
    if len(returned) != len(changed) - len(names):
        return value
    new = iter(returned)
    outputs = tuple(arguments[name] if name else next(new) for name in changed)
    return outputs[0] if len(outputs) == 1 else outputs

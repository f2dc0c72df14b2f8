"""The outputs of a call: without the parts of its result that are no tensors, with the arguments that it wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.wire.messages.guest import Plain


def without_plain(value: Any, returns: Sequence[str]) -> tuple[Any, tuple[Plain, ...] | None]:
    """Return a result without the parts that have no name in `returns` (see `Task.returns`), and these parts.

    A result with other parts stays as it is, and the second value is `None`.
    """
    if not returns:
        return value, ()
    parts = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    plain = tuple(part for part, name in zip(parts, returns, strict=False) if not name)
    if len(parts) != len(returns) or not all(isinstance(part, Plain | None) for part in plain):
        return value, None
    named = tuple(part for part, name in zip(parts, returns, strict=True) if name)
    return (named if len(named) > 1 else named[0] if named else None), plain


def with_changed_inputs(value: Any, changed: Sequence[str], arguments: Mapping[str, Any]) -> Any:
    """
    The outputs of a call that returned `value`, with the inputs that are outputs in their places.

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

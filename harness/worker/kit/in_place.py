"""Completes a return value by the outputs that a call wrote into its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


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

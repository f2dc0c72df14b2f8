"""Completes a return value by the outputs that a call wrote into its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def with_changed_inputs(value: Any, changed: Sequence[str], arguments: Mapping[str, Any]) -> Any:
    """
    The outputs of a call that returned `value`, with the inputs that are outputs in their places.

    `changed` has by output the name of the input that becomes it, or an empty string for a new tensor. A value that has already
    all outputs, or any other number than the new tensors, stays as it is.
    """
    returned = () if value is None else tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not any(changed) or len(returned) != sum(not name for name in changed):
        return value
    new = iter(returned)
    outputs = tuple(arguments[name] if name else next(new) for name in changed)
    return outputs[0] if len(outputs) == 1 else outputs

"""Tensor operators of a record, made again: allocations, views, fills and copies, and what a task lets the host compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from harness.wire import operators
from harness.wire.records import Items, Operator, Value, View
from harness.worker.recording.recorder import tensors

from . import shadow
from .replay_endings import Refused
from .replay_memory import Memory, dtype_named


class HostOperators:
    """Of one candidate, over the memory of its replays."""

    def __init__(self, memory: Memory, allowed: tuple[str, ...], value: Callable[[Value], Any]) -> None:
        """`allowed`: operators that the task lets the host compute with; `value`: what a record's value stands for."""
        self._memory = memory
        self._allowed = allowed
        self._value = value

    def run(self, step: Operator) -> None:
        """Makes one again; `Refused` where it is none of those that the host may use."""
        self._check(step)
        function = getattr(getattr(torch.ops.aten, step.name), step.overload)
        named = {name: self._value(value) for name, value in step.named.items()}
        if any(one.name == "device" for one in function._schema.arguments):
            named["device"] = torch.device("cpu")
        result = function(*(self._value(value) for value in step.arguments), **named)
        for view, tensor in zip(step.results, tensors(result), strict=True):
            self._made(step, view, tensor)

    def _check(self, step: Operator) -> None:
        computes = not operators.is_allowed(step.name, self._allowed)
        if not computes and step.name in operators.FILLING and step.name not in operators.SETTING:
            computes = bool(_values_of(step))
        if computes:
            message = (
                f"the tensor operator `{step.name}` computes outside the Triton kernels; do it in a kernel"
            )
            raise Refused(message, kind="operator", line=step.line)

    def _made(self, step: Operator, view: View, tensor: torch.Tensor) -> None:
        """An operator's result gets its number, and marks by what the operator is."""
        memory = self._memory
        known = memory.storages.get(view.storage)
        if known is None or known._cdata != tensor.untyped_storage()._cdata:
            memory.bind(view.storage, tensor.untyped_storage(), shadow.UNWRITTEN)
        item_bytes = tensor.element_size()
        if step.name in operators.ALLOCATING:
            memory.poison(tensor)
            return
        sources = _values_of(step) if step.name in operators.FREE else _views_of(step)
        if step.name in operators.MOVING or (step.name in operators.SETTING and sources):
            source = sources[-1]
            memory.shadows.copy(view, item_bytes, source, dtype_named(source.dtype).itemsize)
        elif step.name in operators.FILLING:
            memory.shadows.fill(view, item_bytes, shadow.FILLED)
        else:
            memory.shadows.fill(view, item_bytes, shadow.OPERATED)


def _values_of(step: Operator) -> list[View]:
    """Tensors whose values go into the result of a copy or a fill; its target and a tensor that only lends its shape do not."""
    first = 0 if step.name in operators.MOVING and step.name != "copy_" else 1
    if step.name in operators.FILLING and not step.name.endswith(("_like", "fill", "fill_", "zero", "zero_")):
        first = 1 if step.name.startswith("new_") else 0
    given = (*step.arguments[first:], *step.named.values())
    return [value for value in given if isinstance(value, View)]


def _views_of(step: Operator) -> list[View]:
    """All tensors that an operator is given."""
    given = [*step.arguments, *step.named.values()]
    parts = [part for value in given if isinstance(value, Items) for part in value.items]
    return [value for value in (*given, *parts) if isinstance(value, View)]

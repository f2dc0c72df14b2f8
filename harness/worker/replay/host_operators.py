"""Replays tensor operators of a record: allocations, views, fills, copies, and computations that the task allows on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from harness.wire.calls import operators
from harness.wire.calls.records import Items, Operator, Value, View
from harness.worker.kit.poison import poison

from . import shadow
from .call_recorder import tensors
from .replay_endings import Refused
from .replay_memory import Memory, dtype_named


class HostOperators:
    """Replays the tensor operators of one candidate on the memory of a replay."""

    def __init__(self, memory: Memory, allowed: tuple[str, ...], decode: Callable[[Value], Any]) -> None:
        """`allowed`: operators with which the task lets the host compute.

        `decode`: turns a value of a record into a Python value.
        """
        self._memory = memory
        self._allowed = allowed
        self._decode = decode

    def run(self, step: Operator) -> None:
        """Replay an operator; raises `Refused` if the host may not use it."""
        self._check(step)
        function = getattr(getattr(torch.ops.aten, step.name), step.overload)
        named = {name: self._decode(value) for name, value in step.named.items()}
        if any(argument.name == "device" for argument in function._schema.arguments):
            named["device"] = torch.device("cpu")
        result = function(*(self._decode(value) for value in step.arguments), **named)
        for view, tensor in zip(step.results, tensors(result), strict=True):
            self._bind_result(step, view, tensor)

    def _check(self, step: Operator) -> None:
        computes = not operators.is_allowed(step.name, self._allowed)
        if not computes and step.name in operators.FILLING and step.name not in operators.SETTING:
            computes = bool(_values_of(step))
        if computes:
            message = (
                f"the tensor operator `{step.name}` computes outside the Triton kernels; do it in a kernel"
            )
            raise Refused(message, kind="operator", line=step.line)

    def _bind_result(self, step: Operator, view: View, tensor: torch.Tensor) -> None:
        """Bind a result to its number in the record, and mark its bytes by the kind of operator."""
        memory = self._memory
        bound = memory.storages.get(view.storage)
        if bound is None or bound._cdata != tensor.untyped_storage()._cdata:
            memory.bind(view.storage, tensor.untyped_storage(), shadow.UNWRITTEN)
        item_bytes = tensor.element_size()
        if step.name in operators.ALLOCATING:
            poison(tensor)
            return
        sources = _values_of(step) if step.name in operators.FREE else _views_of(step)
        is_constant = step.name in operators.SETTING and all(map(self._is_from_python, sources))
        if step.name in operators.MOVING or (step.name in operators.SETTING and not is_constant):
            source = sources[-1]
            memory.shadows.copy(view, item_bytes, source, dtype_named(source.dtype).itemsize)
        elif step.name in operators.FILLING:
            memory.shadows.fill(view, item_bytes, shadow.FILLED)
        else:
            memory.shadows.fill(view, item_bytes, shadow.OPERATED)

    def _is_from_python(self, value: View) -> bool:
        """True for the constant in `out[0] = 0`, which torch fills in as a tensor; a replay has the same constant."""
        marks = self._memory.shadows.elements(value, dtype_named(value.dtype).itemsize)
        return bool((marks == shadow.HOST).all())


def _values_of(step: Operator) -> list[View]:
    """Tensors with values that go into the result of a copy or a fill: not the target, not a tensor that only gives its shape."""
    first = 0 if step.name in operators.MOVING and step.name != "copy_" else 1
    if step.name in operators.FILLING and not step.name.endswith(("_like", "fill", "fill_", "zero", "zero_")):
        first = 1 if step.name.startswith("new_") else 0
    arguments = (*step.arguments[first:], *step.named.values())
    return [value for value in arguments if isinstance(value, View)]


def _views_of(step: Operator) -> list[View]:
    """All tensors among the arguments of an operator, also inside lists."""
    arguments = [*step.arguments, *step.named.values()]
    items = [item for value in arguments if isinstance(value, Items) for item in value.items]
    return [value for value in (*arguments, *items) if isinstance(value, View)]

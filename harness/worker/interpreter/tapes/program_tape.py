"""The tape of a traced program: its operations, sorted into those to run never, once a launch, or in each program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .tracing import GRID, PLACE, Operation, Trace

_Step = tuple[int, Callable[..., Any], tuple[int, ...], int | tuple[int, ...]]


class Tape:
    """Runs other programs of a launch by the operations of a traced program."""

    def __init__(self, trace: Trace, unused: Mapping[str, tuple[int, ...]]) -> None:
        """`unused`: positions of arguments by operation, of which only the shape matters."""
        self.operations = trace.operations
        self._inputs = trace.inputs
        self._values: list[Any] = trace.values
        inputs = [self._used(operation, unused) for operation in trace.operations]
        live: set[int] = set()
        kept: list[tuple[Operation, tuple[int, ...]]] = []
        for operation, places in zip(reversed(trace.operations), reversed(inputs), strict=True):
            if not operation.pure or not live.isdisjoint(operation.outputs):
                live.update(places)
                kept.append((operation, places))
        # Tier 0: constant. Tier 1: depends on pointers or the grid, once a launch. Tier 2: in each program.
        tiers = dict.fromkeys(trace.inputs, 1)
        self._once: list[_Step] = []
        self._steps: list[_Step] = []
        for operation, places in reversed(kept):
            name, outputs = operation.name, operation.outputs
            tier = max((tiers.get(at, 0) for at in places), default=0)
            if name == PLACE or (name and not operation.pure):
                tier = 2
            if name == GRID:
                tier = max(tier, 1)
            if tier == 0:
                continue
            tiers.update(dict.fromkeys(outputs, tier))
            step = operation.number, operation.call, places, outputs[0] if len(outputs) == 1 else outputs
            (self._once if tier == 1 else self._steps).append(step)
        used = {at for step in (*self._once, *self._steps) for at in step[2]}
        for at in range(len(self._values)):
            if at not in used or at in tiers:
                self._values[at] = None

    def _used(self, operation: Operation, unused: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
        """Places of the inputs; an unused input becomes a constant, the traced program's value."""
        places = list(operation.inputs)
        for at in unused.get(operation.name, ()):
            self._values.append(self._values[places[at]])
            places[at] = len(self._values) - 1
        return tuple(places)

    def begin(self, inputs: Sequence[Any]) -> list[Any] | None:
        """The values to run a launch's programs with; `None` if they must run in Python: it would read other bits."""
        values = list(self._values)
        for at, handle in zip(self._inputs, inputs, strict=True):
            values[at] = handle
        return values if _run(self._once, values) is None else None

    def run(self, values: list[Any]) -> int | None:
        """Run one program. Returns how many operations are done if the program must go on in Python."""
        return _run(self._steps, values)


def _run(steps: Sequence[_Step], values: list[Any]) -> int | None:
    number = 0
    try:
        for number, call, places, output in steps:  # noqa: B007 (returned after an exception)
            result = call(*[values[at] for at in places])
            if isinstance(output, int):
                values[output] = result
            elif output:
                for at, value in zip(output, result, strict=True):
                    values[at] = value
    except Exception:  # noqa: BLE001 (raised again in Python, where its traceback is the kernel's)
        return number
    return None

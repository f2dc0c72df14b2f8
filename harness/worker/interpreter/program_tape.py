"""The operations of one program of a launch, dealt out by what they depend on; see `tracing`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .program_operation import GRID, PLACE, Operation
from .shaping import Differs
from .tracing import Trace


class Tape:
    """The operations of a traced program, dealt out by what they depend on."""

    def __init__(
        self, trace: Trace, unused: Mapping[str, tuple[int, ...]], idle: frozenset[str] = frozenset()
    ) -> None:
        """`unused` are arguments of operations, by their place, that only their shape is asked of.

        `idle` are operations of which the value alone counts here.
        """
        self.operations = trace.operations
        self._inputs = trace.inputs
        self._values: list[Any] = trace.values
        inputs = [self._used(one, unused) for one in trace.operations]
        live: set[int] = set()
        kept: list[tuple[Operation, tuple[int, ...]]] = []
        for one, places in zip(reversed(trace.operations), reversed(inputs), strict=True):
            if not (one.pure or one.name in idle) or not live.isdisjoint(one.outputs):
                live.update(places)
                kept.append((one, places))
        tiers = dict.fromkeys(trace.inputs, 1)
        self._once: list[_Step] = []
        self._steps: list[_Step] = []
        for one, places in reversed(kept):
            tier = max((tiers.get(at, 0) for at in places), default=0)
            if one.name == PLACE or (one.name and not one.pure and one.name not in idle):
                tier = 2
            if one.name == GRID:
                tier = max(tier, 1)
            if tier == 0:
                continue
            for at in one.outputs:
                tiers[at] = tier
            step = one.number, one.call, places, one.outputs[0] if len(one.outputs) == 1 else one.outputs
            (self._once if tier == 1 else self._steps).append(step)
        used = {at for step in (*self._once, *self._steps) for at in step[2]}
        for at in range(len(self._values)):
            if at not in used or at in tiers:
                self._values[at] = None

    def _used(self, one: Operation, unused: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
        """Places of its inputs; a copy of what the traced program had where any will do."""
        places = list(one.inputs)
        for at in unused.get(one.name, ()):
            self._values.append(self._values[places[at]])
            places[at] = len(self._values) - 1
        return tuple(places)

    def begin(self, inputs: Sequence[Any]) -> list[Any] | None:
        """The values to run a launch's programs with; `None` where Python reads something else in this launch."""
        values = list(self._values)
        for at, handle in zip(self._inputs, inputs, strict=True):
            values[at] = handle
        try:
            for _, call, places, output in self._once:
                _store(values, output, call(*[values[at] for at in places]))
        except Differs:
            return None
        return values

    def run(self, values: list[Any]) -> int | None:
        """Runs one program; where it must go on in Python, how many operations are done."""
        number = 0
        try:
            for number, call, places, output in self._steps:  # noqa: B007 (asked when one raises)
                result = call(*[values[at] for at in places])
                if type(output) is int:
                    values[output] = result
                elif output:
                    _store(values, output, result)
        except Exception:  # noqa: BLE001 (Python meets it again, where its traceback is the kernel's)
            return number
        return None


_Step = tuple[int, Callable[..., Any], tuple[int, ...], int | tuple[int, ...]]


def _store(values: list[Any], output: int | tuple[int, ...], result: Any) -> None:
    if isinstance(output, int):
        values[output] = result
        return
    for at, one in zip(output, result, strict=True):
        values[at] = one

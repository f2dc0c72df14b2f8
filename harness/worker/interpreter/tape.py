"""The operations of one program of a launch, dealt out by what they depend on; see `tracing`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .lines import UNKNOWN
from .shaping import Differs, unread

if TYPE_CHECKING:
    from .tracing import Trace

PLACE = "create_get_program_id"
GRID = "create_get_num_programs"
MADE_TOGETHER = frozenset({"ReduceOps", "ScanOps", "create_dot"})
"""Operations for whose value lanes may have to meet, and which do nothing else."""
ATOMICS = frozenset({"create_atomic_rmw", "create_atomic_cas"})
_LOADS = frozenset({"create_load", "create_masked_load"})
_PRODUCTS = frozenset({"create_mul", "create_and"})
_CHECKS = frozenset({"create_assert"})
"""Compiled where somebody debugs alone."""


class Operation(NamedTuple):
    """One of them, in the order in which they were asked for."""

    name: str
    number: int
    """How many that Python asks for came before."""
    call: Callable[..., Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    """Places of values."""
    pure: bool
    """It does nothing but give its outputs, the same ones for the same inputs."""
    repeated: bool
    """It may be done once more for a program that goes on in Python."""
    shown: Callable[..., Any]
    """What Python is given, of the outputs."""
    by_device: bool = False
    """Its outputs hang on whose arithmetic it is, too."""
    line: tuple[str, int] = UNKNOWN
    """File name and line that asked for it; of pure ones it is not told."""


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
        idly = _unread(trace)
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
            if one.name == GRID or one.by_device:
                tier = max(tier, 1)
            if tier == 0:
                continue
            for at in one.outputs:
                tiers[at] = tier
            call = unread(one.call) if (one.name, one.line) in idly else one.call
            step = one.number, call, places, one.outputs[0] if len(one.outputs) == 1 else one.outputs
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


def _unread(trace: Trace) -> Set[tuple[str, tuple[str, int]]]:
    """
    Names and lines of operations whose value nothing uses that a compiler keeps, wherever the program asks for one there.

    It leaves out sums and loads that nobody uses, and what only products with a constant zero or assertions do, and makes no barrier for
    what an atomic found.
    """
    constants = _constants(trace)
    live: set[int] = set()
    read: set[tuple[str, tuple[str, int]]] = set()
    idle: set[tuple[str, tuple[str, int]]] = set()
    for one in reversed(trace.operations):
        used = not live.isdisjoint(one.outputs)
        if one.name in ATOMICS or one.name in MADE_TOGETHER:
            (read if used else idle).add((one.name, one.line))
        volatile = any(trace.values[at] is True for at in one.inputs)
        left_out = bool(one.outputs) and one.name not in ATOMICS and not (one.name in _LOADS and volatile)
        nothing = one.name in _PRODUCTS and any(
            at in constants and _is_zero(trace.values[at]) for at in one.inputs
        )
        if (used or not left_out) and not nothing and one.name not in _CHECKS:
            live.update(one.inputs)
    return idle - read


def _constants(trace: Trace) -> Set[int]:
    """Places of values that are made of no input, no program's number and nothing in memory."""
    varying = set(trace.inputs)
    for one in trace.operations:
        if not one.pure or one.name in (PLACE, GRID) or not varying.isdisjoint(one.inputs):
            varying.update(one.outputs)
    return set(range(len(trace.values))) - varying


def _is_zero(value: Any) -> bool:
    data = getattr(getattr(value, "handle", value), "data", None)
    return data is not None and not np.any(data)


_Step = tuple[int, Callable[..., Any], tuple[int, ...], int | tuple[int, ...]]


def _store(values: list[Any], output: int | tuple[int, ...], result: Any) -> None:
    if isinstance(output, int):
        values[output] = result
        return
    for at, one in zip(output, result, strict=True):
        values[at] = one

"""Sizes of hidden cases: within what a task allows, and no more work than its own cases ask for. Torch-free."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from suites.costs import task_cost
from suites.errors import BadTask
from suites.task import Case, Task

from .seeds import Draw

Device = Literal["cpu", "gpu"]

VECTOR = 8
"""A ragged size is no multiple of it."""
TRIES = 64
"""Draws of one size before the base's own size is kept."""
MORE = 2
"""A hidden case asks for this many times the work of the task's largest case at most."""
FREE_FLOPS, FREE_BYTES, FREE_ROWS = 1 << 24, 1 << 20, 200
"""Work that any kernel does in time, however small the task's own cases are. A row is often one program of the interpreter's."""


@dataclass(frozen=True, slots=True)
class Range:
    """Sizes that an axis may have."""

    low: int
    high: int | None
    step: int
    vary: bool


class Axes:
    """Draws sizes for the axes of one task; a size that the task's cases or `bases` show is drawn for nobody."""

    def __init__(self, task: Task, bases: Sequence[Case], draw: Draw, prefix: str) -> None:
        self._draw = draw
        self._prefix = prefix
        self.ranges = _ranges(task)
        self._shown = {
            (device, axis, sizes_on(case, device)[axis])
            for case in (*task.cases, *bases)
            for axis in case.cpu
            for device in ("cpu", "gpu")
        }

    @property
    def vary(self) -> bool:
        """Whether any axis may have other sizes."""
        return any(axis.vary for axis in self.ranges.values())

    @property
    def are_free(self) -> bool:
        """Whether every axis may have any size from its smallest on."""
        return all(axis.vary and axis.step == 1 and axis.high is None for axis in self.ranges.values())

    def within(self, kept: int, axis: str, low: int, high: int, kind: str, device: Device = "cpu") -> int:
        """A ragged size from `low` to `high`; `kept` where the axis allows no such size."""
        allowed = self.ranges[axis]
        low = max(low, allowed.low, 2)
        high = high if allowed.high is None else min(high, allowed.high)
        if not allowed.vary or high < low:
            return kept
        for attempt in range(TRIES):
            size = low + self._number(high - low + 1, kind, axis, str(attempt))
            size -= size % allowed.step
            ragged = allowed.step % VECTOR == 0 or size % VECTOR or high - low < VECTOR
            if size >= low and ragged and (device, axis, size) not in self._shown:
                return size
        return kept

    def multiple(self, kept: int, axis: str, low: int, high: int, kind: str, *, of: int, not_of: int) -> int:
        """A size from `low` to `high` that is a multiple of `of` and none of `not_of`; `kept` where the axis allows no such size."""
        allowed = self.ranges[axis]
        step = math.lcm(of, allowed.step)
        low = max(low, allowed.low, step)
        low += -low % step
        high = high if allowed.high is None else min(high, allowed.high)
        if not allowed.vary:
            return kept
        for attempt in range(TRIES if high >= low else 0):
            size = low + step * self._number((high - low) // step + 1, kind, axis, str(attempt))
            if size % not_of and ("cpu", axis, size) not in self._shown:
                return size
        return kept

    def _number(self, below: int, *purpose: str) -> int:
        return self._draw.number(below, self._prefix, *purpose)


class Work:
    """What a case asks of a kernel on `cpu`, by the task's cost model; by its sizes alone where the task has none."""

    def __init__(self, task: Task) -> None:
        self._task = task
        asked = [self._asked(case) for case in task.cases]
        free = (FREE_FLOPS, FREE_BYTES, FREE_ROWS)
        self._most = tuple(
            max(MORE * max(column), least)
            for column, least in zip(zip(*asked, strict=True), free, strict=True)
        )

    def fits(self, case: Case) -> bool:
        """Whether a kernel that does the task's own cases in time does this case in time, too."""
        return all(asked <= most for asked, most in zip(self._asked(case), self._most, strict=True))

    def _asked(self, case: Case) -> tuple[int, int, int]:
        """FLOPs, bytes of inputs and outputs, and rows along the last axis."""
        elements = math.prod(case.cpu.values())
        rows = math.prod(list(case.cpu.values())[:-1])
        try:
            cost = task_cost(self._task, case.cpu, case.dtype)
        except BadTask:
            return elements, elements, rows
        return cost.flops, cost.minimal_bytes, rows


def first_fitting(work: Work, make: Callable[[int], Case | None], parts: Sequence[int]) -> Case | None:
    """The first case of `make(part)` whose work fits: sizes shrink with each part. `None` where no case does."""
    for part in parts:
        case = make(part)
        if case is not None and work.fits(case):
            return case
    return None


def sizes_on(case: Case, device: str) -> Mapping[str, int]:
    """The sizes of a case on a kind of device."""
    return case.cpu if device == "cpu" else case.gpu


def _ranges(task: Task) -> dict[str, Range]:
    """
    For each axis what `task.toml` says, else what the open cases show.

    An axis varies freely when no number divides all its sizes. An axis that is always a multiple of something may depend on
    another axis, or be a power of two, and stays as the cases have it.
    """
    ranges = {}
    for axis in task.cases[0].cpu:
        said = task.axes.get(axis)
        if said is not None:
            ranges[axis] = Range(low=said.min, high=None, step=said.multiple_of, vary=said.vary)
            continue
        shown = {sizes_on(case, device)[axis] for case in task.open_cases for device in ("cpu", "gpu")}
        free = math.gcd(*(size for size in shown if size > 1)) == 1
        ranges[axis] = Range(low=min(shown), high=max(shown), step=1, vary=free)
    return ranges

"""Bounds of hidden cases: the sizes that a task allows, and the work that its own cases have. Torch-free."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from suites.costs import task_cost
from suites.errors import BadTask
from suites.task import Case, Task

from .seeds import Draw

Device = Literal["cpu", "gpu"]

VECTOR = 8
"""A ragged size is not a multiple of this number."""
TRIES = 64
"""Draws of one size before the kept size is used."""
MORE = 2
"""A hidden case has at most this many times the work of the task's largest case."""
FREE_FLOPS, FREE_BYTES, FREE_ROWS = 1 << 24, 1 << 20, 200
"""Work that is always allowed, even if the task's own cases are smaller. The interpreter often runs one program per row."""


@dataclass(frozen=True, slots=True)
class Range:
    """Sizes that an axis may have."""

    low: int
    high: int | None
    step: int
    vary: bool


class Axes:
    """Draws sizes for the axes of one task, never a size that the task's cases or `bases` have."""

    def __init__(self, task: Task, bases: Sequence[Case], draw: Draw, prefix: str) -> None:
        self._draw = draw
        self._prefix = prefix
        self.ranges = ranges_of(task)
        self._shown = {
            (device, axis, sizes_on(case, device)[axis])
            for case in (*task.cases, *bases)
            for axis in case.cpu
            for device in ("cpu", "gpu")
        }

    @property
    def vary(self) -> bool:
        """Whether any axis may have a size that the cases do not show."""
        return any(axis.vary for axis in self.ranges.values())

    @property
    def are_free(self) -> bool:
        """Whether every axis may have any size from its smallest on."""
        return all(axis.vary and axis.step == 1 and axis.high is None for axis in self.ranges.values())

    def draw_ragged(
        self, kept: int, axis: str, low: int, high: int, kind: str, device: Device = "cpu"
    ) -> int:
        """Draw a ragged size from `low` to `high`; `kept` if the axis allows none."""
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

    def draw_multiple(
        self, kept: int, axis: str, low: int, high: int, kind: str, *, of: int, not_of: int
    ) -> int:
        """Draw a multiple of `of`, not of `not_of`, from `low` to `high`; `kept` if the axis allows none."""
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
    """The work of a case on `cpu`, by the task's cost model; by the sizes alone if the task has none."""

    def __init__(self, task: Task) -> None:
        self._task = task
        work = [self._measure(case) for case in task.cases]
        free = (FREE_FLOPS, FREE_BYTES, FREE_ROWS)
        self._most = tuple(
            max(MORE * max(column), least)
            for column, least in zip(zip(*work, strict=True), free, strict=True)
        )

    def fits(self, case: Case) -> bool:
        """Return whether a kernel that finishes the task's own cases in time also finishes this case in time."""
        return all(amount <= most for amount, most in zip(self._measure(case), self._most, strict=True))

    def _measure(self, case: Case) -> tuple[int, int, int]:
        """FLOPs, bytes of inputs and outputs, and rows along the last axis."""
        elements = math.prod(case.cpu.values())
        rows = math.prod(list(case.cpu.values())[:-1])
        try:
            cost = task_cost(self._task, case.cpu, case.dtype)
        except BadTask:
            return elements, elements, rows
        return cost.flops, cost.minimal_bytes, rows


def sizes_on(case: Case, device: str) -> Mapping[str, int]:
    """Return the sizes of a case on `cpu` or on a GPU."""
    return case.cpu if device == "cpu" else case.gpu


def ranges_of(task: Task) -> dict[str, Range]:
    """Return the ranges in `task.toml`, or else those that the open cases show.

    An axis varies if no number divides all its sizes. Otherwise it may depend on another axis, or be a power of two, and
    keeps the sizes of the cases.
    """
    ranges = {}
    for axis in task.cases[0].cpu:
        declared = task.axes.get(axis)
        if declared is not None:
            ranges[axis] = Range(declared.min, declared.max, step=declared.multiple_of, vary=declared.vary)
            continue
        shown = {sizes_on(case, device)[axis] for case in task.open_cases for device in ("cpu", "gpu")}
        free = math.gcd(*(size for size in shown if size > 1)) == 1
        ranges[axis] = Range(low=min(shown), high=max(shown), step=1, vary=free)
    return ranges

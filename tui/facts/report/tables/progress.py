"""Tables of progress: accuracy and speedup by iteration with what was spent until then, and pass@k by instances."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from statistics import fmean
from typing import NamedTuple

from sessions.metrics.accuracy import call_accuracy, execution_accuracy, independent_rows, pass_at_each_k
from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.selection import by_instance, grouped
from sessions.metrics.speedup import speedup_at_each_k, speedup_sign
from sessions.state.figure_words import ratio_words
from tui.facts.report.section import Curve, Plot, Point, Section, section_of
from tui.facts.tables import Cell, Field, Number
from tui.facts.vocabulary import grouped as digits

from .cost import COST, DEVICE, TOKENS, CostUnit, spent
from .row_set import METHOD, MODEL, SPEED, N, RowGroup, RowSet, figure, key_fields, notes, share, share_words

BUDGETS = (TOKENS, COST, DEVICE)
START = Point(0.0, 1.0, 1.0, 1.0)
"""Before the first attempt there is only the baseline."""
AXES = ("tokens a task", "US dollars a task", "device seconds a task")
REACHED = (
    "Reached: geometric mean over all tasks of the best speedup until this iteration; a task without a timed kernel counts "
    "as 1.00x. The HTML page plots it: a mean over sessions with a band from the lowest to the highest session."
)


class ProgressStep(NamedTuple):
    """A group after some of its iterations."""

    iteration: int
    group: RowGroup
    reached: tuple[float, ...]
    """Geometric mean over all tasks of the best speedup so far, of each session that was timed."""
    spent: tuple[float | None, ...]
    """Mean of the sessions, of each of `BUDGETS`; `None` if unknown."""


class _SoFar:
    """Speedups and spending of a session until an iteration."""

    def __init__(self, session: Sequence[AttemptRow]) -> None:
        self.bests: dict[str, AttemptRow] = {}
        """Best row by task."""
        self._speeds: dict[str, float] = {}
        self._spent: dict[CostUnit, float] = {}
        self._tasks = len({row.task for row in session})
        self._by_iteration = grouped(session, lambda row: row.number)

    def advance(self, rows: RowSet, iteration: int) -> None:
        """Add the rows of one more iteration."""
        new = self._by_iteration.get(iteration, [])
        for row in new:
            best = self.bests.get(row.task)
            if not row.rejected and (best is None or row.place > best.place):
                self.bests[row.task] = row
        for row in rows.timed(new):
            if not row.rejected and row.headline is not None:
                self._speeds[row.task] = max(row.headline, self._speeds.get(row.task, 0.0))
        for budget in BUDGETS:
            amount = spent(new, budget)
            if amount is not None:
                self._spent[budget] = self._spent.get(budget, 0.0) + amount

    @property
    def reached(self) -> float:
        """Geometric mean over all tasks of the best speedups."""
        return math.exp(math.fsum(map(math.log, self._speeds.values())) / self._tasks)

    def spent(self, budget: CostUnit) -> float | None:
        """Return the spending for each task, as far as it is known."""
        amount = self._spent.get(budget)
        return None if amount is None else amount / self._tasks


def _steps(rows: RowSet, group: RowGroup) -> list[ProgressStep]:
    sessions = list(grouped(group.rows, lambda row: row.session).values())
    so_far = [_SoFar(session) for session in sessions]
    # If the correct kernels of a session were not timed, or on other hardware, its speedup is not known.
    measured = [
        state
        for state, session in zip(so_far, sessions, strict=True)
        if rows.timed(session) or not any(row.correct for row in session)
    ]
    measured = measured if group.timed else []
    steps = []
    for iteration in range(1, max(row.number for row in group.rows) + 1):
        for state in so_far:
            state.advance(rows, iteration)
        bests = [row for state in so_far for row in state.bests.values()]
        steps.append(
            ProgressStep(
                iteration,
                RowGroup(group.keys, (), bests, rows.timed(bests)),
                tuple(state.reached for state in measured),
                tuple(_mean([state.spent(budget) for state in measured or so_far]) for budget in BUDGETS),
            )
        )
    return steps


def _mean(values: Sequence[float | None]) -> float | None:
    amounts = [value for value in values if value is not None]
    return fmean(amounts) if amounts and len(amounts) == len(values) else None


def _of_group(field: Field[RowGroup]) -> Field[ProgressStep]:
    return Field(field.column, lambda step: field.cell(step.group), field.style)


def _spending(place: int) -> Field[ProgressStep]:
    budget = BUDGETS[place]
    return Field(
        Number(f"{budget.name} a task", if_known=True, drop=4 - place),
        lambda step: figure(step.spent[place], budget.words),
        "dim",
    )


def iteration_section(rows: RowSet) -> Section:
    """Return accuracy and speedup after each iteration, and curves of the speedup against what was spent."""
    steps = [_steps(rows, group) for group in rows.by_method]
    if max((len(of_group) for of_group in steps), default=0) < 2:
        steps = []
    accuracy = (
        N,
        share("call", lambda group: call_accuracy(group.bests)),
        share("exec", lambda group: execution_accuracy(group.bests)),
    )
    fields: tuple[Field[ProgressStep], ...] = (
        *map(_of_group, key_fields((METHOD, MODEL))),
        Field(Number("iterations"), lambda step: figure(step.iteration, digits)),
        *map(_of_group, (*accuracy, SPEED[0])),
        Field(Number("reached", if_known=True, drop=1), _reached_cell),
        *map(_spending, range(len(BUDGETS))),
    )
    flat = [step for of_group in steps for step in of_group]
    section = section_of(
        "By iteration", fields, flat, lambda step: f"{'|'.join(step.group.keys)}|{step.iteration}"
    )
    reached = REACHED if any(step.reached for step in flat) else ""
    sample = "n: tasks, once for each session, with the best attempt of the iterations so far."
    return section.named("iterations", notes(rows, sample, reached), tuple(_plots(steps)))


def _reached_cell(step: ProgressStep) -> Cell:
    sign = speedup_sign(step.group.timed)
    return figure(fmean(step.reached) if step.reached else None, lambda value: ratio_words(value, sign))


def _plots(steps: Sequence[Sequence[ProgressStep]]) -> Iterator[Plot]:
    names = [" with ".join(of_group[0].group.keys) for of_group in steps]
    for place, name_of_axis in enumerate(AXES):
        curves = []
        for name, of_group in zip(names, steps, strict=True):
            points = [
                Point(x, fmean(step.reached), min(step.reached), max(step.reached))
                for step in of_group
                if (x := step.spent[place]) is not None and step.reached
            ]
            if points:
                curves.append(Curve(name, (START, *points)))
        if curves:
            yield Plot(name_of_axis, "speedup", tuple(curves))


class DrawnInstances(NamedTuple):
    """A group with `k` of its instances drawn."""

    keys: tuple[str, ...]
    k: int
    tasks: int
    share: float
    speedup: float | None
    sign: str


def pass_section(rows: RowSet) -> Section:
    """Return pass@k and speedup@k for each number of instances that every task has."""
    draws = []
    for group in rows.by_method:
        instances = by_instance(independent_rows(group.rows)).values()
        # A sample is the fastest correct row of an instance, else any row of it.
        samples = [max(own, key=lambda row: (row.correct, row.headline or 0.0)) for own in instances]
        tasks, sign = len({row.task for row in samples}), speedup_sign(samples)
        speedups = speedup_at_each_k(samples) if group.timed else []
        chances = enumerate(zip_longest(pass_at_each_k(samples), speedups), start=1)
        draws += [
            DrawnInstances(group.keys, k, tasks, chance, speedup, sign) for k, (chance, speedup) in chances
        ]
    fields: tuple[Field[DrawnInstances], ...] = (
        *key_fields((METHOD, MODEL)),
        Field(Number("k"), lambda draw: figure(draw.k, str)),
        Field(Number("n"), lambda draw: figure(draw.tasks, digits)),
        Field(Number("pass@k"), lambda draw: figure(draw.share, share_words)),
        Field(
            Number("speedup@k", if_known=True),
            lambda draw: figure(draw.speedup, lambda value: ratio_words(value, draw.sign)),
        ),
    )
    if max((draw.k for draw in draws), default=0) < 2:
        draws = []
    section = section_of("pass@k", fields, draws, lambda draw: f"{'|'.join(draw.keys)}|{draw.k}")
    meaning = "n: tasks. A sample is one instance with all its iterations; pass@k is the unbiased estimate (Chen et al. 2021)."
    speeds = "speedup@k: expected best speedup of k instances (ParEval); an unsolved instance counts as 0."
    about_speed = (speeds, rows.against) if any(draw.speedup is not None for draw in draws) else ()
    return section.named("pass", (meaning, *about_speed, rows.left_out()))

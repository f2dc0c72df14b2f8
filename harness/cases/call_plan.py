"""The plan of an evaluation: which calls it makes, in order, decided before the candidate is loaded. Torch-free."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from suites.task import Case, Task

from .hidden_cases import exam_cases, open_cases
from .judged_case import JudgedCase, Layout
from .seeds import POOL, Draw

ROW_OF_CALLS = 8
"""Calls of a small case in a row in an exam. They show state that grows or is used up."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the entry point."""

    case: JudgedCase
    place: int
    """Place of the inputs in the pool. From `POOL` on: the neighbour of the inputs at `place - POOL`."""
    hold: bool = False
    """The next step uses the same tensors, with other values in them."""
    again: bool = False
    """Use the tensors of the step before, if possible."""
    config: int = 0
    """Config of autotuned kernels. Declared cases run config 0, and so does "one tensor twice", which may be left out."""
    order: int = 0
    """Order of the programs in the interpreter: see `harness/wire/messages/guest.py`."""
    poison: int = 0
    """Content of fresh memory in this call, see `harness/worker/kit/poison.py`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All calls of one evaluation."""

    execution: tuple[Step, ...]
    """Every case once; the stage *call* makes the first call."""
    repeats: tuple[Step, ...]
    """Some cases again, with inputs seen before and new ones; they show state that is kept between calls."""

    @property
    def declared(self) -> tuple[Case, ...]:
        """The task's own cases: they are compiled, and their traffic is reported."""
        return tuple(step.case.case for step in self.execution if not step.case.hidden)

    @property
    def hidden(self) -> tuple[Step, ...]:
        """The first call of each drawn case."""
        return tuple(step for step in self.execution if step.case.hidden)

    @property
    def configs(self) -> int:
        """Number of configs that run at least once if every call launches the autotuned kernel."""
        return 1 + max(step.config for step in (*self.execution, *self.repeats))

    @property
    def calls(self) -> int:
        """Number of calls."""
        return len(self.execution) + len(self.repeats)


def make_plan(task: Task, seed: int, source: str, *, exam: bool, hidden: bool = True) -> Plan:
    """Make the plan for one candidate, the same for the same task, seed and source; without `hidden` cases only of open ones."""
    draw = Draw(seed, task.id, source, "exam" if exam else "open")
    cases = exam_cases(task, draw) if exam else open_cases(task, draw, hidden=hidden)
    if exam:
        # A candidate may prepare something in its first call, for any dtype or shape: draw which case is first.
        declared = sum(not case.hidden for case in cases)
        begin = draw.number(declared, "first case")
        cases = (*cases[begin:declared], *cases[:begin], *cases[declared:])
    places = {case.name: draw.number(POOL, "first", case.name) for case in cases}
    execution = [Step(case, places[case.name]) for case in cases]
    smallest = min(cases, key=lambda case: (not case.hidden, _elements(case)))
    steps = _with_configs(execution, _repeats(cases, places, draw, exam=exam), draw)
    poisoned = tuple(
        dataclasses.replace(
            step,
            poison=draw.number(1 << 16, "poison", str(number)),
            order=min(number, 1) if step.case is not smallest else 2 + draw.number(1 << 16, "order"),
        )
        for number, step in enumerate(steps)
    )
    return Plan(poisoned[: len(cases)], poisoned[len(cases) :])


def _with_configs(execution: list[Step], repeats: list[Step], draw: Draw) -> list[Step]:
    """All steps, each with the number of its config, in an order that the guest cannot know.

    Large cases get the low numbers, which every autotuned kernel has: small cases exercise little of a config.
    """
    hidden = [step.case for step in execution if step.case.hidden and not step.case.twice]
    names = [case.name for case in sorted(hidden, key=_elements, reverse=True)]
    half = -(-len(names) // 2)
    numbers = _shuffle(1, half, draw, "large cases")
    numbers += _shuffle(1 + half + len(repeats), len(names) - half, draw, "small cases")
    configs = dict(zip(names, numbers, strict=True))
    repeat_numbers = _shuffle(1 + half, len(repeats), draw, "repeats")
    return [
        *(dataclasses.replace(step, config=configs.get(step.case.name, 0)) for step in execution),
        *(
            dataclasses.replace(step, config=number)
            for step, number in zip(repeats, repeat_numbers, strict=True)
        ),
    ]


def _shuffle(first: int, count: int, draw: Draw, purpose: str) -> list[int]:
    return sorted(range(first, first + count), key=lambda number: draw.number(1 << 32, purpose, str(number)))


def _repeats(cases: tuple[JudgedCase, ...], places: dict[str, int], draw: Draw, *, exam: bool) -> list[Step]:
    """
    One declared case again: with the same inputs; with other values in the same tensors; with values that differ from the first
    ones only in the middle. Then a different case, then the first inputs again.

    An exam adds many calls of a small case.
    """
    repeated = draw.one_of([case for case in cases if not case.hidden], "repeated case")
    different = [case for case in cases if case.case.cpu != repeated.case.cpu and not case.twice]
    large = sorted(different, key=_elements, reverse=True)[: -(-len(different) // 2)]
    between = draw.one_of(large, "case between") if large else repeated
    place = places[repeated.name]
    steps = [
        Step(repeated, place, hold=True),
        Step(repeated, _different_place(place, draw, repeated.name), hold=True, again=True),
        Step(repeated, POOL + place, again=True),
        Step(between, _different_place(places[between.name], draw, between.name)),
        Step(repeated, place),
    ]
    return [*steps, *_row_of_calls(cases, draw)] if exam else steps


def _row_of_calls(cases: tuple[JudgedCase, ...], draw: Draw) -> list[Step]:
    """Many calls of the smallest plain case; every second call uses the tensors of the call before."""
    plain = [
        case
        for case in cases
        if case.layout is Layout.DENSE and not (case.special or case.extreme or case.twice)
    ]
    # A case of one element has too few different answers to show a stale one.
    small = min(plain, key=lambda case: (_elements(case) < ROW_OF_CALLS, _elements(case)))
    places = (draw.places("many", small.name) * ROW_OF_CALLS)[:ROW_OF_CALLS]
    return [
        Step(small, place, hold=at % 2 == 0, again=at % 2 == 1 and places[at - 1] != place)
        for at, place in enumerate(places)
    ]


def _different_place(place: int, draw: Draw, name: str) -> int:
    return next(choice for choice in draw.places("again", name) if choice != place)


def _elements(case: JudgedCase) -> int:
    return math.prod(case.case.cpu.values())

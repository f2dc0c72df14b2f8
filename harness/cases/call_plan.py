"""Which calls an evaluation makes, in order, decided before the candidate is loaded. Torch-free."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from suites.task import Case, Task

from .hidden_cases import exam_cases, open_cases
from .judged_case import JudgedCase, Layout
from .seeds import POOL, Draw

PATIENCE = 3
"""A replay may take this many times as long as the call itself may."""
MANY = 8
"""Calls of a small case in a row in an exam: state that grows or wears out shows."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the entry point."""

    case: JudgedCase
    place: int
    """Of the pool of inputs; from `POOL` on, a neighbour of the place that is `POOL` before."""
    hold: bool = False
    """The step after this one is called with the same tensors, other values in them."""
    again: bool = False
    """The tensors of the step before, where that is possible."""
    config: int = 0
    """Which config of autotuned kernels runs. Declared cases run the first one, and so does one tensor twice, which may be left out."""
    poison: int = 0
    """Drawn for each call: what fresh memory holds in it, see `harness/worker/kit/poison.py`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All calls of one evaluation."""

    execution: tuple[Step, ...]
    """Every case once; the first one is the call that the stage *call* makes."""
    repeats: tuple[Step, ...]
    """Cases once more, with inputs that were seen and others, in an order that no state between calls survives."""

    @property
    def declared(self) -> tuple[Case, ...]:
        """Cases with sizes of their own on every device: those that are compiled and whose traffic is told."""
        return tuple(step.case.case for step in self.execution if not step.case.hidden)

    @property
    def configs(self) -> int:
        """How many configs of an autotuned kernel run at least once, where it is launched in every call."""
        return 1 + max(step.config for step in (*self.execution, *self.repeats))

    @property
    def calls(self) -> int:
        """How many there are."""
        return len(self.execution) + len(self.repeats)


def make_plan(task: Task, seed: int, source: str, *, exam: bool) -> Plan:
    """The plan for one candidate; the same for the same task, session seed and source."""
    draw = Draw(seed, task.id, source, "exam" if exam else "open")
    cases = exam_cases(task, draw) if exam else open_cases(task, draw)
    if exam:
        # What a process does in its first call is for one dtype or shape as it is for another.
        declared = sum(not case.hidden for case in cases)
        begin = draw.number(declared, "first case")
        cases = (*cases[begin:declared], *cases[:begin], *cases[declared:])
    first = {case.name: draw.number(POOL, "first", case.name) for case in cases}
    repeats = _repeats(cases, first, draw, exam=exam)
    # Small cases show little of a config: large ones get the low numbers, which every autotuned kernel has.
    numbered = sorted((case for case in cases if case.hidden and not case.twice), key=_elements, reverse=True)
    half = -(-len(numbered) // 2)
    large, small = ([case.name for case in part] for part in (numbered[:half], numbered[half:]))
    numbers = _shuffled(1, half, draw, "large cases")
    numbers += _shuffled(1 + half + len(repeats), len(small), draw, "small cases")
    configs = dict(zip((*large, *small), numbers, strict=True))
    further = _shuffled(1 + half, len(repeats), draw, "repeats")
    execution = [Step(case, first[case.name], config=configs.get(case.name, 0)) for case in cases]
    repeated = [
        dataclasses.replace(step, config=number) for step, number in zip(repeats, further, strict=True)
    ]
    steps = tuple(
        dataclasses.replace(step, poison=draw.number(1 << 16, "poison", str(at)))
        for at, step in enumerate((*execution, *repeated))
    )
    return Plan(steps[: len(cases)], steps[len(cases) :])


def _shuffled(begin: int, count: int, draw: Draw, purpose: str) -> list[int]:
    """The numbers from `begin` on, as many as `count`, in an order that the guest cannot know."""
    return sorted(range(begin, begin + count), key=lambda number: draw.number(1 << 32, purpose, str(number)))


def _repeats(
    cases: tuple[JudgedCase, ...], first: dict[str, int], draw: Draw, *, exam: bool
) -> tuple[Step, ...]:
    """
    A declared case with the inputs of before, then with other values in the very same tensors, then with values that differ from
    the first ones in the middle alone; another case; and the first inputs once more.

    An exam goes on with a small case many times.
    """
    declared = [case for case in cases if not case.hidden]
    repeated = draw.one_of(declared, "repeated case")
    others = [case for case in cases if case.case.cpu != repeated.case.cpu and not case.twice]
    others = sorted(others, key=_elements, reverse=True)[: -(-len(others) // 2)]
    other = draw.one_of(others, "case between") if others else repeated
    place = first[repeated.name]
    steps = [
        Step(repeated, place, hold=True),
        Step(repeated, _others(place, draw, repeated.name)[0], hold=True, again=True),
        Step(repeated, POOL + place, again=True),
        Step(other, _others(first[other.name], draw, other.name)[0]),
        Step(repeated, place),
    ]
    return (*steps, *(_many(cases, draw) if exam else ()))


def _many(cases: tuple[JudgedCase, ...], draw: Draw) -> tuple[Step, ...]:
    """The smallest plain case `MANY` times, in tensors of its own and in those of the call before by turns."""
    # A case of one element has too few answers to tell one call's from another's.
    plain = [
        case
        for case in cases
        if case.layout is Layout.DENSE and not (case.special or case.extreme or case.twice)
    ]
    small = min(plain, key=lambda case: (_elements(case) < MANY, _elements(case)))
    places = (draw.places("many", small.name) * MANY)[:MANY]
    return tuple(
        Step(small, place, hold=at % 2 == 0, again=at % 2 == 1 and places[at - 1] != place)
        for at, place in enumerate(places)
    )


def _others(place: int, draw: Draw, name: str) -> list[int]:
    return [other for other in draw.places("again", name) if other != place]


def _elements(case: JudgedCase) -> int:
    return math.prod(case.case.cpu.values())

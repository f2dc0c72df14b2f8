"""A sweep over a candidate's launch parameters: variants are compiled and sampled, and the best are named for the judge.

It is a beam search by generations. The first changes one thing, each later one adds a change that works alone to the best
variants of the one before, until nothing improves or enough was compiled. A generation passes two rungs: the first compiles
all of it and drops what does not compile, does not fit, spills where the start does not, or is code that is known already;
the second samples memory traffic where the change can matter for it, and keeps the best. What spills or does not fit but
would ask less of memory stays a parent: a larger tile often needs more warps. The third rung, the judge, is the caller's.
Nothing here is measured; the same answers of the survey give the same variants in the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness import Target
from harness.stages.survey import Compiled, Sampled
from sessions.events import SweptVariant

from .edits import edited
from .knobs import Knob, knobs_of
from .standing import CURABLE, NOT_SAMPLED, SAME_CODE, Code, Standing, code, fault, standing

COMPILES = 48
"""Variants that one sweep compiles at most."""
SAMPLES = 12
"""Of these, variants whose memory traffic is sampled at most; what changes options alone shares its parent's sample."""
BEAM = 4
"""Variants that a generation leaves to the next."""


class Surveying(Protocol):
    """Whoever compiles and samples sources; `harness.stages.survey.Survey`."""

    async def compile(self, sources: Sequence[str]) -> tuple[Compiled, ...]:
        """Each source compiled, in order."""
        ...

    async def sample(self, sources: Sequence[str]) -> tuple[Sampled, ...]:
        """The traffic of each source, in order."""
        ...


Changes = frozenset[tuple[int, int]]
"""Which choice of which knob, by their places."""
UNCHANGED: Changes = frozenset()


@dataclass(frozen=True, slots=True)
class Variant:
    """What is left of a generation."""

    changes: Changes
    standing: Standing
    fault: str = ""
    """Why it cannot be judged, where another change may cure that."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a sweep came to."""

    tried: int
    pruned: dict[str, int]
    variants: tuple[SweptVariant, ...]
    """Those that look better than the start first; of these and of the others the best first."""


@dataclass(slots=True)
class _Sweep:
    """One sweep under way."""

    source: str
    task: str
    target: Target
    survey: Surveying
    knobs: tuple[Knob, ...]
    start: Compiled
    tried: int = 0
    pruned: Counter[str] = field(default_factory=Counter)
    known: set[frozenset[Code]] = field(default_factory=set)
    samples: dict[Changes, Sampled] = field(default_factory=dict)
    """By the changes that matter for traffic."""

    def changed(self, changes: Changes) -> str:
        """The source with these changes."""
        return edited(
            self.source,
            [edit for knob, choice in sorted(changes) for edit in self.knobs[knob].choices[choice].edits],
        )

    def shape(self, changes: Changes) -> Changes:
        """Those of the changes that matter for traffic."""
        return frozenset(change for change in changes if self.knobs[change[0]].shapes)

    async def generation(self, asked: Sequence[Changes]) -> list[Variant]:
        """What both rungs leave of a generation, best first; of equals the earlier."""
        asked = asked[: COMPILES - self.tried]
        self.tried += len(asked)
        compiled = await self.survey.compile([self.changed(changes) for changes in asked])
        found = [(changes, one, self._fault(one)) for changes, one in zip(asked, compiled, strict=True)]
        left = [
            (changes, one, why)
            for changes, one, why in found
            if not why or (why in CURABLE and self.shape(changes))
        ]
        await self._sample([self.shape(changes) for changes, _, _ in left])
        self.pruned.update(why for _, _, why in found if why)
        variants = []
        for changes, one, why in left:
            sampled = self.samples.get(self.shape(changes))
            if sampled is not None:
                stands = standing(self.task, self.target, one, sampled)
                variants.append(Variant(changes, stands, why))
            elif not why:
                self.pruned[NOT_SAMPLED] += 1
        return best_first(variants)

    def _fault(self, compiled: Compiled) -> str:
        """Why the first rung drops it; empty when it passes."""
        why = fault(compiled, self.start)
        if why:
            return why
        found = code(compiled)
        if found in self.known:
            return SAME_CODE
        self.known.add(found)
        return ""

    async def _sample(self, shapes: Sequence[Changes]) -> None:
        new = [shape for shape in dict.fromkeys(shapes) if shape not in self.samples]
        new = new[: SAMPLES + 1 - len(self.samples)]
        sampled = await self.survey.sample([self.changed(shape) for shape in new])
        self.samples |= dict(zip(new, sampled, strict=True))


async def sweep(source: str, task: str, target: Target, survey: Surveying, *, most: int) -> Findings:
    """The variants of a candidate that look best, at most `most` of them; none where nothing can be varied."""
    knobs = knobs_of(source, target)
    if not knobs or most < 1:
        return Findings(0, {}, ())
    (start,) = await survey.compile([source])
    if start.error:
        return Findings(0, {}, ())
    running = _Sweep(source, task, target, survey, knobs, start)
    running.known.add(code(start))
    running.samples[UNCHANGED] = (await survey.sample([source]))[0]
    now = standing(task, target, start, running.samples[UNCHANGED])
    beam = await running.generation(list(single_changes(knobs)))
    singles = left = [variant for variant in beam if not variant.fault]
    best = now
    while beam and beam[0].standing > best and running.tried < COMPILES:
        best = max([best, *(variant.standing for variant in left)])
        beam = await running.generation(list(combined(beam[:BEAM], singles)))
        left = best_first([*left, *(variant for variant in beam if not variant.fault)])
    named = [(one, _looks_better(one, left, now)) for one in left]
    named.sort(key=lambda pair: not pair[1])
    variants = tuple(
        SweptVariant(worded(knobs, one.changes), running.changed(one.changes), better=better)
        for one, better in named[:most]
    )
    return Findings(running.tried, dict(sorted(running.pruned.items())), variants)


def _looks_better(one: Variant, left: Sequence[Variant], start: Standing) -> bool:
    """Above the start, and above whatever has only some of its changes: the others must be worth something too."""
    lesser = (other.standing for other in left if other.changes < one.changes)
    return one.standing > start and all(one.standing > standing for standing in lesser)


def single_changes(knobs: Sequence[Knob]) -> Iterator[Changes]:
    """One change each: first the nearest value of every knob, then the next nearest."""
    for choice in range(max(len(knob.choices) for knob in knobs)):
        for place, knob in enumerate(knobs):
            if choice < len(knob.choices):
                yield frozenset({(place, choice)})


def combined(beam: Sequence[Variant], singles: Sequence[Variant]) -> Iterator[Changes]:
    """Each variant of the beam with one more change that was good alone, to something that it leaves as it was."""
    seen: set[Changes] = set()
    for variant in beam:
        touched = {knob for knob, _ in variant.changes}
        for single in singles:
            both = variant.changes | single.changes
            if both not in seen and not touched & {knob for knob, _ in single.changes}:
                seen.add(both)
                yield both


def best_first(variants: Sequence[Variant]) -> list[Variant]:
    """By standing; of equals the earlier first."""
    return sorted(variants, key=lambda variant: variant.standing, reverse=True)


def worded(knobs: Sequence[Knob], changes: Changes) -> tuple[str, ...]:
    """The changes in words, in the order of the knobs."""
    return tuple(
        f"{knobs[knob].name} {knobs[knob].present.shown} to {knobs[knob].choices[choice].shown}"
        for knob, choice in sorted(changes)
    )

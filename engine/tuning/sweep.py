"""A sweep over a candidate's launch parameters: compiles and samples variants, and names the best for the judge.

The sweep is a beam search by generations. The first generation changes one parameter. Each later one adds a change
that works alone to the best variants of the last generation, until nothing improves or enough was compiled.

A generation has two steps. The first compiles all variants and drops those that do not compile, do not fit, spill
while the start does not, or repeat known code. The second samples memory traffic if the change can affect it, and
keeps the best. A variant that spills or does not fit stays a parent if it would need less memory traffic: a larger
tile often needs more warps.

The caller asks the judge. Nothing here is measured; the same survey results give the same variants in the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from harness import Target
from harness.stages.survey import Compiled, Sampled, Surveying
from sessions.events import SweptVariant

from .edits import apply_edits
from .knobs import Knob, knobs_of
from .launch_config import Config, launch_config
from .prospect import CURABLE, FORBIDDEN, NOT_SAMPLED, SAME_CODE, Code, Prospect, code, fault, prospect_of

COMPILES = 48
"""Most variants that one sweep compiles."""
SAMPLES = 12
"""Most variants that get a sample of their memory traffic; a change of options alone shares its parent's sample."""
BEAM = 4
"""Variants that a generation passes to the next."""


Changes = frozenset[tuple[int, int]]
"""Pairs of a knob and its choice, by index."""
UNCHANGED: Changes = frozenset()


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant that a generation kept."""

    changes: Changes
    prospect: Prospect
    fault: str = ""
    """Why it cannot be judged, if another change may cure that."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of a sweep."""

    tried: int
    pruned: dict[str, int]
    variants: tuple[SweptVariant, ...]
    """Variants that look better than the start come first; each group is best first."""


@dataclass(slots=True)
class _Sweep:
    """The state of one sweep."""

    source: str
    task: str
    target: Target
    survey: Surveying
    knobs: tuple[Knob, ...]
    start: Compiled
    is_allowed: Callable[[Config], bool] | None
    tried: int = 0
    pruned: Counter[str] = field(default_factory=Counter)
    known: set[frozenset[Code]] = field(default_factory=set)
    samples: dict[Changes, Sampled] = field(default_factory=dict)
    """Traffic samples by the changes that affect traffic."""

    def changed(self, changes: Changes) -> str:
        """Returns the source with these changes."""
        return apply_edits(
            self.source,
            [edit for knob, choice in sorted(changes) for edit in self.knobs[knob].choices[choice].edits],
        )

    def shape(self, changes: Changes) -> Changes:
        """Returns the changes that affect traffic."""
        return frozenset(change for change in changes if self.knobs[change[0]].shapes)

    async def generation(self, batch: Sequence[Changes]) -> list[Variant]:
        """Compile and sample a generation; returns the kept variants, best first."""
        if self.is_allowed is not None:
            allowed = [changes for changes in batch if self.is_allowed(launch_config(self.changed(changes)))]
            self.pruned[FORBIDDEN] += len(batch) - len(allowed)
            batch = allowed
        batch = batch[: COMPILES - self.tried]
        self.tried += len(batch)
        compiled = await self.survey.compile([self.changed(changes) for changes in batch])
        results = [
            (changes, outcome, self._fault(outcome)) for changes, outcome in zip(batch, compiled, strict=True)
        ]
        kept = [
            (changes, outcome, why)
            for changes, outcome, why in results
            if not why or (why in CURABLE and self.shape(changes))
        ]
        await self._sample([self.shape(changes) for changes, _, _ in kept])
        self.pruned.update(why for _, _, why in results if why)
        variants = []
        for changes, outcome, why in kept:
            sampled = self.samples.get(self.shape(changes))
            if sampled is not None:
                prospect = prospect_of(self.task, self.target, outcome, sampled)
                variants.append(Variant(changes, prospect, why))
            elif not why:
                self.pruned[NOT_SAMPLED] += 1
        return best_first(variants)

    def _fault(self, compiled: Compiled) -> str:
        """Returns why compiling alone rules a variant out; empty if it does not."""
        why = fault(compiled, self.start)
        if why:
            return why
        compiled_code = code(compiled)
        if compiled_code in self.known:
            return SAME_CODE
        self.known.add(compiled_code)
        return ""

    async def _sample(self, shapes: Sequence[Changes]) -> None:
        new = [shape for shape in dict.fromkeys(shapes) if shape not in self.samples]
        new = new[: SAMPLES + 1 - len(self.samples)]
        sampled = await self.survey.sample([self.changed(shape) for shape in new])
        self.samples |= dict(zip(new, sampled, strict=True))


async def sweep(
    source: str,
    task: str,
    target: Target,
    survey: Surveying,
    *,
    most: int,
    is_allowed: Callable[[Config], bool] | None = None,
) -> Findings:
    """Returns the variants of a candidate that look best, at most `most`; none if nothing can be varied.

    Variants with a configuration that `is_allowed` refuses are not compiled.
    """
    knobs = knobs_of(source, target)
    if not knobs or most < 1:
        return Findings(0, {}, ())
    (start,) = await survey.compile([source])
    if start.error:
        return Findings(0, {}, ())
    running = _Sweep(source, task, target, survey, knobs, start, is_allowed)
    running.known.add(code(start))
    running.samples[UNCHANGED] = (await survey.sample([source]))[0]
    start_prospect = prospect_of(task, target, start, running.samples[UNCHANGED])
    beam = await running.generation(list(single_changes(knobs)))
    singles = kept = [variant for variant in beam if not variant.fault]
    best = start_prospect
    while beam and beam[0].prospect > best and running.tried < COMPILES:
        best = max([best, *(variant.prospect for variant in kept)])
        beam = await running.generation(list(combine_changes(beam[:BEAM], singles)))
        kept = best_first([*kept, *(variant for variant in beam if not variant.fault)])
    named = [(variant, _looks_better(variant, kept, start_prospect)) for variant in kept]
    named.sort(key=lambda pair: not pair[1])
    variants = tuple(
        SweptVariant(
            describe_changes(knobs, variant.changes), running.changed(variant.changes), better=better
        )
        for variant, better in named[:most]
    )
    return Findings(running.tried, dict(sorted((+running.pruned).items())), variants)


def _looks_better(variant: Variant, kept: Sequence[Variant], start: Prospect) -> bool:
    """True if it beats the start and every variant with only some of its changes: each change must help."""
    simpler = [subset.prospect for subset in kept if subset.changes < variant.changes]
    return variant.prospect > start and all(variant.prospect > prospect for prospect in simpler)


def single_changes(knobs: Sequence[Knob]) -> Iterator[Changes]:
    """Yield one change each: first the nearest value of every knob, then the next nearest."""
    for choice in range(max(len(knob.choices) for knob in knobs)):
        for place, knob in enumerate(knobs):
            if choice < len(knob.choices):
                yield frozenset({(place, choice)})


def combine_changes(beam: Sequence[Variant], singles: Sequence[Variant]) -> Iterator[Changes]:
    """Yield each variant of the beam with one more change that was good alone, of a knob that it left unchanged."""
    seen: set[Changes] = set()
    for variant in beam:
        touched = {knob for knob, _ in variant.changes}
        for single in singles:
            both = variant.changes | single.changes
            if both not in seen and not touched & {knob for knob, _ in single.changes}:
                seen.add(both)
                yield both


def best_first(variants: Sequence[Variant]) -> list[Variant]:
    """Returns the variants by prospect; equal variants keep their order."""
    return sorted(variants, key=lambda variant: variant.prospect, reverse=True)


def describe_changes(knobs: Sequence[Knob], changes: Changes) -> tuple[str, ...]:
    """Returns the changes in words, in the order of the knobs."""
    return tuple(
        f"{knobs[knob].name} {knobs[knob].present.shown} to {knobs[knob].choices[choice].shown}"
        for knob, choice in sorted(changes)
    )

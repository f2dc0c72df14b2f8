"""A sweep over a candidate's launch parameters: compiles variants, and names the best for the judge.

The sweep is a beam search by generations. The first generation changes one parameter. Each later one adds a change
that works alone to the best variants of the last generation, until nothing improves or enough was compiled.

A generation compiles all variants and drops those that do not compile, do not fit, spill while the start does not, or repeat
known code.

The caller asks the judge. Nothing here is measured; the same survey results give the same variants in the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from harness import Evaluation, KernelResources, Target, Verdict
from harness.stages.survey import Compiled, Surveying
from harness.wire.results.evaluation import SCHEMA, FullSize
from sessions.events import SweptVariant
from sessions.state.ranking import lowest_occupancy, rank

from .edits import apply_edits
from .knobs import Knob, knobs_of
from .launch_config import Config, launch_config

RANKED_BY = "spills, grid, load widths and occupancy; none of it was timed, so the choice is a guess"

TOO_LARGE = "do not fit the device"
FAILED = "do not compile"
SPILLS = "spill where the start does not"
SAME_CODE = "give the same code as another"
FORBIDDEN = "break the task's constraint"


class Code(NamedTuple):
    """The code that a device would load and launch for one kernel."""

    kernel: str
    digest: str
    grids: tuple[tuple[int, int, int], ...]
    autotune_index: int | None


class Prospect(NamedTuple):
    """Compares variants without timings, most important field first; greater is better.

    The order is that of `sessions.state.ranking.rank`, with four differences:

    - Memory traffic does not count: no program has run.
    - Scalar registers that spill do not count: they go to lanes of vector registers, not to memory.
    - Occupancy counts beyond four waves too, because a variant that may be better is only tried.
    - If matrix instructions do the work, occupancy does not count: two waves per SIMD are often right there.
    """

    spills: float
    fill: float
    load_bits: float
    occupancy: float


def prospect_of(task: str, target: Target, compiled: Compiled, full_sizes: tuple[FullSize, ...]) -> Prospect:
    """Returns the prospect of a variant, assuming that it is correct; `full_sizes` are the task's open cases."""
    evaluation = Evaluation(
        schema=SCHEMA,
        task=task,
        device="cpu",
        verdict=Verdict.CORRECT,
        call=True,
        execution=True,
        stages=(),
        resources={
            target.name: tuple(msgspec.structs.replace(row, sgpr_spills=None) for row in compiled.resources)
        },
        full_sizes=full_sizes,
    )
    ranked = rank(evaluation)
    matrix = any(row.matrix_instructions for row in compiled.resources)
    return Prospect(
        ranked.spills,
        ranked.fill,
        ranked.load_bits,
        0.0 if matrix else lowest_occupancy(evaluation) or 0.0,
    )


def fault(compiled: Compiled, start: Compiled) -> str:
    """Returns why a compiled variant of a sweep is not worth judging: an error, or more spills than `start`; else empty."""
    if compiled.error:
        too_large = any("too_large" in row.flags for row in compiled.resources)
        return TOO_LARGE if too_large else FAILED
    if spill_count(compiled.resources) > spill_count(start.resources):
        return SPILLS
    return ""


def spill_count(resources: Sequence[KernelResources]) -> int:
    """Returns the spilled vector registers, plus bytes on targets that count bytes, of all kernels that run."""
    return sum(
        count or 0 for row in resources if not row.failure for count in (row.vgpr_spills, row.spill_bytes)
    )


def code(compiled: Compiled) -> frozenset[Code]:
    """Returns the code that would run; two sources with equal code are the same variant."""
    return frozenset(
        Code(row.kernel, row.code_sha256, tuple(fit.grid for fit in row.fits), row.autotune_index)
        for row in compiled.resources
    )


COMPILES = 48
"""Most variants that one sweep compiles."""
BEAM = 4
"""Variants that a generation passes to the next."""


Changes = frozenset[tuple[int, int]]
"""Pairs of a knob and its choice, by index."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant that a generation kept."""

    changes: Changes
    prospect: Prospect


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
    full_sizes: tuple[FullSize, ...]
    is_allowed: Callable[[Config], bool] | None
    tried: int = 0
    pruned: Counter[str] = field(default_factory=Counter)
    known: set[frozenset[Code]] = field(default_factory=set)

    def changed(self, changes: Changes) -> str:
        """Returns the source with these changes."""
        return apply_edits(
            self.source,
            [edit for knob, choice in sorted(changes) for edit in self.knobs[knob].choices[choice].edits],
        )

    async def generation(self, batch: Sequence[Changes]) -> list[Variant]:
        """Compile a generation; returns the kept variants, best first."""
        if self.is_allowed is not None:
            allowed = [changes for changes in batch if self.is_allowed(launch_config(self.changed(changes)))]
            self.pruned[FORBIDDEN] += len(batch) - len(allowed)
            batch = allowed
        batch = batch[: COMPILES - self.tried]
        self.tried += len(batch)
        compiled = await self.survey.compile([self.changed(changes) for changes in batch])
        variants = []
        for changes, outcome in zip(batch, compiled, strict=True):
            if why := self._fault(outcome):
                self.pruned[why] += 1
            else:
                variants.append(Variant(changes, self.prospect(outcome)))
        return best_first(variants)

    def prospect(self, compiled: Compiled) -> Prospect:
        """Returns the prospect of a compiled variant."""
        return prospect_of(self.task, self.target, compiled, self.full_sizes)

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


async def sweep(
    source: str,
    task: str,
    target: Target,
    survey: Surveying,
    *,
    most: int,
    full_sizes: tuple[FullSize, ...] = (),
    is_allowed: Callable[[Config], bool] | None = None,
) -> Findings:
    """Returns the variants of a candidate that look best, at most `most`; none if nothing can be varied.

    `full_sizes` are the task's open cases: of these, only those that are longer than a launch say how full the device is.
    Variants with a configuration that `is_allowed` refuses are not compiled.
    """
    knobs = knobs_of(source, target)
    if not knobs or most < 1:
        return Findings(0, {}, ())
    (start,) = await survey.compile([source])
    if start.error:
        return Findings(0, {}, ())
    running = _Sweep(source, task, target, survey, knobs, start, full_sizes, is_allowed)
    running.known.add(code(start))
    start_prospect = running.prospect(start)
    beam = singles = kept = await running.generation(list(single_changes(knobs)))
    best = start_prospect
    while beam and beam[0].prospect > best and running.tried < COMPILES:
        best = max([best, *(variant.prospect for variant in kept)])
        beam = await running.generation(list(combine_changes(beam[:BEAM], singles)))
        kept = best_first([*kept, *beam])
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

"""The method `geak-evolve`, GEAK's second version: each round makes several descendants of ranked parents at once.

A lineage has its own short history. It repairs its failing candidate, and drops it at the debugging trap, as `geak`
does. A lineage with a correct kernel takes its parent from the ranking of all lineages: the first lineage the best,
the second the next, and again from the top after the last. One iteration is one evaluated candidate, so the last
round may be smaller.

Two differences to the public code: a full ranking loses its worst entry, not its best; and the history shows each
attempt once, not copies of the latest attempt.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from engine.corpus.retrieval import Corpus
from engine.prompting.judged import JudgedCandidate
from engine.prompting.prompting import (
    Place,
    Setting,
    descend_prompt,
    escape_prompt,
    first_prompt,
    repair_prompt,
)
from engine.reply.candidate import Unusable
from sessions.events import EndReason, Message, Origin, Role

from .context import Context
from .history import ANCESTORS, History, up_to
from .progress import TRAP
from .proposing import examples_of, judge_start, reflect, setting_of, try_candidate, with_pin
from .side_by_side import side_by_side

REMEMBERED = 5
"""Number of earlier attempts that a prompt of a lineage shows."""


@dataclass(slots=True)
class Lineage:
    """One line of descent."""

    tried: list[JudgedCandidate] = field(default_factory=list)
    """Its latest attempts with a candidate, also correct ones, oldest first."""
    line: JudgedCandidate | None = None
    """The candidate being repaired."""
    failures: int = 0
    """JudgedCandidates in a row on this line; an iteration without code counts."""
    given_up: list[JudgedCandidate] = field(default_factory=list)
    """The last candidate of each line that was dropped, oldest first."""
    unusable: str = ""
    """Why the latest iteration brought no code; empty if it did."""

    def remember(self, attempt: JudgedCandidate) -> None:
        """Add an attempt; only the latest `REMEMBERED` are kept."""
        self.tried = [*self.tried, attempt][-REMEMBERED:]

    def forget(self, attempts: Collection[str]) -> None:
        """Drop the attempts that a person banned."""
        self.tried = [attempt for attempt in self.tried if attempt.attempt not in attempts]
        if self.line is not None and self.line.attempt in attempts:
            self.line, self.failures = None, 0

    def failed(self) -> None:
        """Count a failure; at the trap the line is dropped."""
        self.failures += 1
        if self.failures >= TRAP:
            if self.line is not None:
                self.given_up.append(self.line)
            self.line, self.failures = None, 0


class GeakEvolve:
    """The method `geak-evolve`."""

    name = "geak-evolve"
    asks_model = True
    takes = frozenset({"without", "descendants", "corpus", "start"})
    roles = frozenset(Role)
    modules = frozenset({"knowledge", "one-shot", "reflection"})
    iterations: int | None = None

    async def run(self, context: Context) -> EndReason:
        """See `Method`."""
        width = min(context.options.descendants, context.phases[0])
        lineages = [Lineage() for _ in range(width)]
        ranked, without_gain = History(max(width, ANCESTORS)), 0
        correct: dict[str, JudgedCandidate] = {}
        start = await judge_start(context)
        if start is not None and start.passed:
            ranked.add(start)
            correct[start.attempt] = start
        elif start is not None:
            lineages[0].line, lineages[0].failures = start, 1
        remaining = context.iterations
        # A round ends with its phase, so that an extension does not change rounds that were made before it.
        for size in (size for phase in context.phases for size in round_sizes(phase, width)):
            remaining -= size
            orders = await context.orders()
            pinned = correct.get(orders.pinned or "")
            ranked.drop(orders.banned)
            for lineage in lineages:
                lineage.forget(orders.banned)
            inputs = RoundInputs(tuple(ranked), pinned, without_gain)
            newcomers = await self._round(context, lineages[:size], inputs, last=not remaining)
            # In the order of their numbers, not of their ends: a resumed session must get the same ranking.
            gains = [ranked.add(newcomer) for newcomer in newcomers]
            correct |= {newcomer.attempt: newcomer for newcomer in newcomers}
            without_gain = 0 if any(gains) else without_gain + bool(len(ranked))
        return EndReason.ITERATIONS

    async def _round(
        self, context: Context, lineages: Sequence[Lineage], inputs: RoundInputs, *, last: bool
    ) -> list[JudgedCandidate]:
        setting, examples = await setting_of(context), await examples_of(context)
        made: dict[int, JudgedCandidate] = {}

        async def work(place: int, lane: Context) -> bool:
            descent = Descent(setting, examples, inputs, Place(place + 1, len(lineages)))
            newcomer = await descend(lane, lineages[place], descent, last=last)
            if newcomer is not None:
                made[place] = newcomer
            return False

        await side_by_side(context.lanes(len(lineages)), work)
        return [made[place] for place in sorted(made)]


def round_sizes(iterations: int, width: int) -> list[int]:
    """Returns the number of candidates of each round: `width`, and the rest in the last round."""
    return [min(width, iterations - made) for made in range(0, iterations, width)]


@dataclass(frozen=True, slots=True)
class RoundInputs:
    """What is known before a round: a result of a sibling counts from the next round on."""

    ranked: tuple[JudgedCandidate, ...]
    """Ascending, best last."""
    pinned: JudgedCandidate | None
    """The parent of all descendants, if a person chose one."""
    without_gain: int


@dataclass(frozen=True, slots=True)
class Descent:
    """The inputs of one descendant, besides its lineage."""

    setting: Setting
    examples: Corpus
    inputs: RoundInputs
    place: Place

    @property
    def parent(self) -> JudgedCandidate | None:
        """The parent by rank: the best for the first descendant, the next for the second, then from the top again.

        If a person chose a parent, it is the parent of all.
        """
        ranked = self.inputs.ranked
        if self.inputs.pinned is not None or not ranked:
            return self.inputs.pinned
        return ranked[-1 - (self.place.number - 1) % len(ranked)]

    @property
    def shown(self) -> tuple[JudgedCandidate, ...]:
        """The best few of the ranking including the parent, ascending; none above a parent that a person chose."""
        if self.inputs.pinned is not None:
            return tuple(up_to(self.inputs.pinned, self.inputs.ranked)[-ANCESTORS:])
        top = self.inputs.ranked[-ANCESTORS:]
        parent = self.parent
        return top if parent is None or parent in top else (parent, *top[1:])

    @property
    def best(self) -> JudgedCandidate | None:
        """The best of all lineages."""
        return self.inputs.ranked[-1] if self.inputs.ranked else None


async def descend(
    context: Context, lineage: Lineage, descent: Descent, *, last: bool
) -> JudgedCandidate | None:
    """Make one attempt of a lineage; returns its candidate if it is correct. No line of the last round reflects."""
    line, best = lineage.line, descent.best
    base = line or descent.parent
    if line is not None:
        role, origin = Role.GENERATOR, Origin.REPAIR
    elif base is not None:
        role, origin = Role.OPTIMIZER, Origin.OPTIMIZE
    else:
        role, origin = Role.GENERATOR, Origin.FRESH
    build = partial(prompt_of, context=context, lineage=lineage, descent=descent)
    made = await try_candidate(context, role, descent.setting, build, origin=origin, base=base, best=best)
    if isinstance(made, Unusable):
        lineage.unusable = made.message
        lineage.failed()
        return None
    lineage.unusable = ""
    lineage.remember(made)
    if made.passed:
        lineage.line, lineage.failures = None, 0
        return made
    lineage.line = made
    lineage.failed()
    if not last:
        await reflect(context, descent.setting, made, earlier=made.failures_before, best=best)
    return None


def prompt_of(
    setting: Setting, *, context: Context, lineage: Lineage, descent: Descent
) -> tuple[Message, ...]:
    """Returns the prompt of a lineage's next attempt."""
    parent, line = descent.parent, lineage.line
    if line is not None:
        return repair_prompt(
            setting,
            failed=line,
            failures=lineage.failures,
            trap=TRAP,
            earlier=line.failures_before,
            before=line.before,
            best=descent.best,
            example=descent.examples.by_code(line.source),
            unusable=lineage.unusable,
        )
    if parent is not None:
        return descend_prompt(
            with_pin(setting, parent.attempt) if descent.inputs.pinned else setting,
            history=descent.shown,
            parent=parent,
            lineage=lineage.tried,
            place=descent.place,
            without_gain=descent.inputs.without_gain,
            unusable=lineage.unusable,
        )
    if lineage.given_up:
        return escape_prompt(
            setting,
            given_up=lineage.given_up,
            trap=TRAP,
            example=descent.examples.by_instruction(context.task),
            unusable=lineage.unusable,
        )
    return first_prompt(
        setting,
        example=descent.examples.by_instruction(context.task),
        unusable=lineage.unusable,
        place=descent.place if descent.place.of > 1 else None,
    )

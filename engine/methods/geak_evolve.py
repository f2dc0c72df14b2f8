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
from sessions.events import METHOD_FACTS, EndReason, Message, Origin, Role

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
    correct: dict[str, JudgedCandidate] = field(default_factory=dict)
    """All its correct candidates by attempt, also rejected ones: a person can pin each."""
    line: JudgedCandidate | None = None
    """The candidate being repaired."""
    failures: int = 0
    """Failures in a row on this line; an iteration without code counts."""
    given_up: list[JudgedCandidate] = field(default_factory=list)
    """The last candidate of each line that was dropped, oldest first."""
    unusable: str = ""
    """Why the latest iteration brought no code; empty if it did."""

    def remember(self, attempt: JudgedCandidate) -> None:
        """Add an attempt; of those that are not correct only the latest `REMEMBERED` are kept."""
        self.tried = [*self.tried, attempt][-REMEMBERED:]
        if (base := attempt.as_base) is not None:
            self.correct[attempt.attempt] = base

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
    takes = frozenset({"without", "show_reference", "descendants", "corpus", "start"})
    modules = frozenset({"knowledge", "one-shot", "examples", "reflection"})
    roles, iterations = METHOD_FACTS["geak-evolve"]

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
            setting, examples = await setting_of(context), await examples_of(context)
            this_round = EvolveRound(
                setting, examples, tuple(ranked), pinned, without_gain, size, is_last=not remaining
            )
            newcomers = await this_round.descend(context, lineages[:size])
            # In the order of their numbers, not of their ends: a resumed session must get the same ranking.
            gains = [ranked.add(newcomer) for newcomer in newcomers]
            for lineage in lineages:
                correct |= lineage.correct
            without_gain = 0 if any(gains) else without_gain + bool(len(ranked))
        return EndReason.ITERATIONS


def round_sizes(iterations: int, width: int) -> list[int]:
    """Returns the number of candidates of each round: `width`, and the rest in the last round."""
    return [min(width, iterations - made) for made in range(0, iterations, width)]


@dataclass(frozen=True, slots=True)
class EvolveRound:
    """What is known before a round: a result of a sibling counts from the next round on."""

    setting: Setting
    examples: Corpus
    ranked: tuple[JudgedCandidate, ...]
    """Ascending, best last."""
    pinned: JudgedCandidate | None
    """The parent of all descendants, if a person chose one."""
    without_gain: int
    size: int
    is_last: bool

    def parent(self, number: int) -> JudgedCandidate | None:
        """Returns the parent of a descendant (from 1): the best for the first, the next for the second, then from the top again.

        If a person chose a parent, it is the parent of all.
        """
        if self.pinned is not None or not self.ranked:
            return self.pinned
        return self.ranked[-1 - (number - 1) % len(self.ranked)]

    def shown(self, parent: JudgedCandidate) -> tuple[JudgedCandidate, ...]:
        """The best few of the ranking including the parent, ascending; none above a parent that a person chose."""
        if self.pinned is not None:
            return tuple(up_to(self.pinned, self.ranked)[-ANCESTORS:])
        top = self.ranked[-ANCESTORS:]
        return top if parent in top else (parent, *top[1:])

    @property
    def best(self) -> JudgedCandidate | None:
        """The best of all lineages."""
        return self.ranked[-1] if self.ranked else None

    async def descend(self, context: Context, lineages: Sequence[Lineage]) -> list[JudgedCandidate]:
        """Make one attempt of each lineage, side by side; returns the correct candidates in the lineages' order."""
        made: dict[int, JudgedCandidate] = {}

        async def work(place: int, lane: Context) -> bool:
            newcomer = await self._attempt(lane, lineages[place], place + 1)
            if newcomer is not None:
                made[place] = newcomer
            return False

        await side_by_side(context.lanes(self.size), work)
        return [made[place] for place in sorted(made)]

    async def _attempt(self, context: Context, lineage: Lineage, number: int) -> JudgedCandidate | None:
        """Make one attempt of a lineage; returns its candidate if it is correct."""
        line, best = lineage.line, self.best
        base = line or self.parent(number)
        if line is not None:
            role, origin = Role.GENERATOR, Origin.REPAIR
        elif base is not None:
            role, origin = Role.OPTIMIZER, Origin.OPTIMIZE
        else:
            role, origin = Role.GENERATOR, Origin.FRESH
        build = partial(self._prompt, lineage=lineage, number=number)
        made = await try_candidate(context, role, self.setting, build, origin=origin, base=base, best=best)
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
        if not self.is_last:
            await reflect(context, self.setting, made, earlier=made.failures_before, best=best)
        return None

    def _prompt(self, setting: Setting, *, lineage: Lineage, number: int) -> tuple[Message, ...]:
        """Returns the prompt of a lineage's attempt; `setting` is that of the round, with a person's words."""
        parent, line, unusable = self.parent(number), lineage.line, lineage.unusable
        place = Place(number, self.size)
        if line is not None:
            return repair_prompt(
                setting,
                failed=line,
                failures=lineage.failures,
                trap=TRAP,
                earlier=line.failures_before,
                before=line.before,
                best=self.best,
                example=self.examples.by_code(line.source),
                unusable=unusable,
            )
        if parent is not None:
            return descend_prompt(
                with_pin(setting, parent.attempt) if self.pinned else setting,
                history=self.shown(parent),
                parent=parent,
                lineage=lineage.tried,
                place=place,
                without_gain=self.without_gain,
                unusable=unusable,
            )
        example = self.examples.by_instruction(setting.task)
        if lineage.given_up:
            return escape_prompt(
                setting, given_up=lineage.given_up, trap=TRAP, example=example, unusable=unusable
            )
        return first_prompt(setting, example=example, unusable=unusable, place=place)

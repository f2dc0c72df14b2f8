"""The state of one `geak` instance and its next step, by GEAK's rules alone: no model, no judge, no clock.

Source: GEAK (AMD, 2025). Where its public code differs from the paper, the paper counts. One such point: failures
count from the first one on. The code counts them only after a fast candidate exists, so it repairs a kernel that
never passed for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from engine.prompting.judged import JudgedCandidate
from sessions.events import Orders, Origin, Role

from .history import History

TRAP = 5
"""Failures in a row after which a line is dropped: GEAK's `max_perf_debug_num`."""


class Move(Enum):
    """The four prompts of GEAK's generator and optimizer."""

    FIRST = auto()
    REPAIR = auto()
    OPTIMIZE = auto()
    ESCAPE = auto()


@dataclass(frozen=True, slots=True)
class NextRequest:
    """The request of the next iteration."""

    move: Move
    role: Role
    origin: Origin
    base: JudgedCandidate | None
    """The candidate from which the next is derived."""


@dataclass(slots=True)
class Progress:
    """The state of one instance."""

    history: History = field(default_factory=History)
    line: JudgedCandidate | None = None
    """The candidate being repaired."""
    failures: int = 0
    """Failures in a row on this line; an iteration without code counts."""
    given_up: list[JudgedCandidate] = field(default_factory=list)
    """The last candidate of each line that was dropped, oldest first."""
    escaping: bool = False
    """True if a line was dropped and no candidate was proposed since."""
    last: JudgedCandidate | None = None
    """The latest correct candidate, also if it did not enter the history."""
    without_gain: int = 0
    """Correct candidates in a row that did not beat the best."""
    unusable: str = ""
    """Why the latest iteration brought no code; empty if it did."""
    pinned: JudgedCandidate | None = None
    """The base that a person chose."""
    correct: dict[str, JudgedCandidate] = field(default_factory=dict)
    """All correct candidates by attempt, also rejected ones and those that left the history: a person can pin each."""

    def obey(self, orders: Orders) -> None:
        """Follow a person's orders from the next step on."""
        self.pinned = self.correct.get(orders.pinned or "")
        self.history.drop(orders.banned)
        if self.line is not None and self.line.attempt in orders.banned:
            self.line, self.failures = None, 0
        if self.last is not None and self.last.attempt in orders.banned:
            self.last = None

    def next_step(self) -> NextRequest:
        """Returns the next step; drops the line at the trap."""
        if self.failures >= TRAP:
            self._drop_line()
        best = self.pinned or self.history.best
        if self.line is not None:
            return NextRequest(Move.REPAIR, Role.GENERATOR, Origin.REPAIR, self.line)
        if best is not None:
            move = Move.ESCAPE if self.escaping else Move.OPTIMIZE
            return NextRequest(move, Role.OPTIMIZER, Origin.OPTIMIZE, best)
        return NextRequest(Move.ESCAPE if self.escaping else Move.FIRST, Role.GENERATOR, Origin.FRESH, None)

    def passed(self, newcomer: JudgedCandidate) -> None:
        """Record a candidate that the judge passed and, in manual review, a person accepted."""
        self.line, self.failures, self.escaping, self.unusable = None, 0, False, ""
        self.last = self.correct[newcomer.attempt] = newcomer
        self.without_gain = 0 if self.history.add(newcomer) else self.without_gain + 1

    def tuned(self, variant: JudgedCandidate | None) -> None:
        """Record the variant that a sweep found; it only enters the history, because no model made it."""
        if variant is not None:
            self.correct[variant.attempt] = variant
            self.history.add(variant)

    def failed(self, failure: JudgedCandidate) -> None:
        """Record a candidate that did not pass; it is repaired next."""
        self.line, self.escaping, self.unusable = failure, False, ""
        self.failures += 1
        if (base := failure.as_base) is not None:
            self.correct[failure.attempt] = base

    def brought_no_code(self, why: str) -> None:
        """Record an iteration without a candidate.

        The line stays the same, and the failure counts so that the line ends.
        """
        self.unusable = why
        self.failures += 1

    def _drop_line(self) -> None:
        if self.line is not None:
            self.given_up.append(self.line)
        self.line, self.failures, self.escaping = None, 0, True

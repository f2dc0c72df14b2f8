"""Where one geak instance stands, and what it does next. No model, no judge, no clock: only GEAK's rules.

Source: GEAK (AMD, 2025). Where its public code differs from the paper, the paper rules: failures count from the first one
on (the code counts once a fast candidate exists, so a kernel that never passed is repaired for ever).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from harness import Evaluation
from sessions.events import Origin, Role

from .history import Ancestor, History

TRAP = 5
"""Failures in a row after which a line is dropped: GEAK's `max_perf_debug_num`."""


class Move(Enum):
    """The four prompts of GEAK's generator and optimizer."""

    FIRST = auto()
    REPAIR = auto()
    OPTIMIZE = auto()
    ESCAPE = auto()


@dataclass(slots=True)
class Failure:
    """A candidate that did not pass, and what was learned from it."""

    attempt: str
    source: str
    strategy: str
    evaluation: Evaluation
    before: Ancestor | Failure | None = None
    """What it was derived from."""
    rejection: str | None = None
    """A person's reason, where the judge passed it and a person did not."""
    reflection: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """What the next iteration asks for."""

    move: Move
    role: Role
    origin: Origin
    base: Ancestor | Failure | None
    """What the next candidate is derived from."""


@dataclass(slots=True)
class Progress:
    """State of one instance."""

    history: History = field(default_factory=History)
    line: Failure | None = None
    """The candidate being repaired."""
    failures: int = 0
    """In a row on this line; an iteration without code counts."""
    given_up: list[Failure] = field(default_factory=list)
    """The last candidate of each line that was dropped, oldest first."""
    escaping: bool = False
    """A line was dropped and no candidate has come since."""
    last: Ancestor | None = None
    """The latest correct candidate, whether it entered the history or not."""
    without_gain: int = 0
    """Correct candidates in a row that did not beat the best."""
    unusable: str = ""
    """Why the latest iteration brought no code; empty when it did."""

    def next_step(self) -> Step:
        """What to ask for now; drops the line when it is trapped."""
        if self.failures >= TRAP:
            self._drop_line()
        best = self.history.best
        if self.line is not None:
            return Step(Move.REPAIR, Role.GENERATOR, Origin.REPAIR, self.line)
        if best is not None:
            move = Move.ESCAPE if self.escaping else Move.OPTIMIZE
            return Step(move, Role.OPTIMIZER, Origin.OPTIMIZE, best)
        return Step(Move.ESCAPE if self.escaping else Move.FIRST, Role.GENERATOR, Origin.FRESH, None)

    def passed(self, newcomer: Ancestor) -> None:
        """The judge, and in manual review a person, let a candidate pass."""
        self.line, self.failures, self.escaping, self.unusable = None, 0, False, ""
        self.last = newcomer
        self.without_gain = 0 if self.history.add(newcomer) else self.without_gain + 1

    def tuned(self, variant: Ancestor | None) -> None:
        """A sweep over the latest correct candidate found this: no step of the model's, so it only enters the history."""
        if variant is not None:
            self.history.add(variant)

    def failed(self, failure: Failure) -> None:
        """A candidate did not pass: it is what is repaired next."""
        self.line, self.escaping, self.unusable = failure, False, ""
        self.failures += 1

    def brought_no_code(self, why: str) -> None:
        """Two replies held no candidate. The line stays what it was, and the failure counts, so that this ends too."""
        self.unusable = why
        self.failures += 1

    def _drop_line(self) -> None:
        if self.line is not None:
            self.given_up.append(self.line)
        self.line, self.failures, self.escaping = None, 0, True

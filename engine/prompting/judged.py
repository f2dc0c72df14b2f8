"""A candidate of an instance with what judge, person and reflector said about it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness import Evaluation, Verdict
from sessions.state.judged import JudgedFacts
from sessions.state.ranking import Rank, why_below
from sessions.state.state import AttemptState


@dataclass(slots=True, eq=False)
class JudgedCandidate:
    """A candidate that was judged, correct or not. Source and evaluation are read when they are used."""

    record: AttemptState
    before: JudgedCandidate | None = None
    """The candidate from which it was derived."""
    rejection: str | None = None
    """A person's reason for rejecting a correct candidate (may be empty); `None` if no person rejected it."""
    reflection: str = ""
    """The reflector's analysis; empty if the reflector was not asked."""

    @property
    def attempt(self) -> str:
        """Name of the attempt, for example `softmax#2/7`."""
        return self.record.attempt

    @property
    def source(self) -> str:
        """The candidate; empty if the reply had none."""
        return self.record.source or ""

    @property
    def strategy(self) -> str:
        """The strategy in the words of its author; may be empty."""
        return self.record.strategy

    @property
    def judged(self) -> JudgedFacts:
        """The verdict."""
        if self.record.judged is None:
            raise ValueError(f"{self.attempt} is not judged")
        return self.record.judged

    @property
    def evaluation(self) -> Evaluation:
        """The judge's evaluation."""
        return self.judged.evaluation

    @property
    def passed(self) -> bool:
        """True if it is correct and no person rejected it."""
        return self.judged.verdict is Verdict.CORRECT and self.rejection is None

    @property
    def as_base(self) -> JudgedCandidate | None:
        """The candidate as a base that a person can pin; `None` if it is not correct. A pin overrules a rejection."""
        if self.judged.verdict is not Verdict.CORRECT:
            return None
        return self if self.rejection is None else replace(self, rejection=None)

    @property
    def rank(self) -> Rank:
        """Sort key, greater is better; without timings it uses counts and resources (`sessions.state.ranking.rank`)."""
        return self.judged.rank

    def why_below(self, better: JudgedCandidate) -> str:
        """Returns the figure by which it ranks below another correct candidate (`sessions.state.ranking.why_below`)."""
        return why_below(self.evaluation, better.evaluation)

    @property
    def failures_before(self) -> list[JudgedCandidate]:
        """The failures from which it was derived without a passed candidate between, oldest first."""
        earlier: list[JudgedCandidate] = []
        before = self.before
        while before is not None and not before.passed:
            earlier.insert(0, before)
            before = before.before
        return earlier

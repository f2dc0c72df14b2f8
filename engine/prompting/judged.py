"""A candidate of an instance with what judge, person and reflector said about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from harness import Evaluation, Verdict
from sessions.journal.compact import Compact, compact, compactable, held
from sessions.state.ranking import Rank, rank, why_below


@compactable("source", "evaluation")
@dataclass(slots=True, eq=False)
class JudgedCandidate:
    """A candidate that was judged, correct or not."""

    attempt: str
    """Name of the attempt, for example `softmax#2/7`."""
    source: str
    strategy: str
    """The strategy in the words of its author; may be empty."""
    evaluation: Evaluation
    before: JudgedCandidate | None = None
    """The candidate from which it was derived."""
    rejection: str | None = None
    """A person's reason for rejecting a correct candidate (may be empty); `None` if no person rejected it."""
    reflection: str = ""
    """The reflector's analysis; empty if the reflector was not asked."""

    @property
    def passed(self) -> bool:
        """True if it is correct and no person rejected it."""
        return self.evaluation.verdict is Verdict.CORRECT and self.rejection is None

    @property
    def as_base(self) -> JudgedCandidate | None:
        """The candidate as a base that a person can pin; `None` if it is not correct. A pin overrules a rejection."""
        if self.evaluation.verdict is not Verdict.CORRECT:
            return None
        return self if self.rejection is None else replace(self, rejection=None)

    @property
    def rank(self) -> Rank:
        """Sort key, greater is better; without timings it uses counts and resources (`sessions.state.ranking.rank`)."""
        return rank(self.evaluation)

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


def compact_all_but(
    used: Iterable[JudgedCandidate | None], candidates: Iterable[JudgedCandidate | None]
) -> None:
    """Compress candidates and those before them, except the ones that the next prompts use."""
    whole = {candidate.attempt for candidate in used if candidate is not None}
    for candidate in candidates:
        while candidate is not None and not isinstance(held(candidate, "evaluation"), Compact):
            if candidate.attempt not in whole:
                evaluation, task = candidate.evaluation, candidate.evaluation.task
                candidate.source = compact(candidate.source, str, task)
                candidate.evaluation = compact(evaluation, Evaluation, f"{task} {evaluation.verdict}")
            candidate = candidate.before

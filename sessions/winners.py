"""Which attempts are held up as the best, by rank, by what people said, and by the exam."""

from __future__ import annotations

from collections.abc import Iterable

from harness import Verdict

from .metrics import Rank, rank
from .state import AttemptState, Confirmation


def contenders(attempts: Iterable[AttemptState]) -> list[AttemptState]:
    """Correct attempts that nobody rejected, best first and of equals the first first: the order of the exam."""
    found = [each for each in _wanted(attempts) if each.verdict is Verdict.CORRECT]
    # Sorting is stable, so that of equals the first stays first.
    return sorted(found, key=_rank, reverse=True)


def best_of(attempts: Iterable[AttemptState]) -> AttemptState | None:
    """The best judged attempt that nobody rejected; `None` when there is none.

    What failed the exam comes after all other correct ones, and before what failed on the open cases; what was timed again
    for the exam comes first, by that.
    """
    best: AttemptState | None = None
    for each in _wanted(attempts):
        # Strictly better, so that of equals the first stays.
        if best is None or place(each) > place(best):
            best = each
    return best


def place(attempt: AttemptState) -> tuple[int, Rank]:
    """The order of judged attempts at one task; greater is better. `ValueError` for one that is not judged."""
    correct = attempt.verdict is Verdict.CORRECT
    if not correct:
        return 0, _rank(attempt)
    if attempt.speedup_confirmed is not None:
        # The best of many noisy figures is too good: one that was timed again does not yield to one that was not.
        return 3, _rank(attempt)._replace(speedup=attempt.speedup_confirmed)
    return 2 if attempt.confirmation is not Confirmation.NOT_CONFIRMED else 1, _rank(attempt)


def _rank(attempt: AttemptState) -> Rank:
    if attempt.evaluation is None:
        raise ValueError(f"{attempt.attempt} is not judged")
    return rank(attempt.evaluation)


def _wanted(attempts: Iterable[AttemptState]) -> list[AttemptState]:
    """Judged ones that no person rejected."""
    return [
        each
        for each in attempts
        if each.evaluation is not None and (each.decision is None or each.decision.accepted)
    ]

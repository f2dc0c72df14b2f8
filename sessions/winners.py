"""Selects the best attempts, by rank, by decisions of people, and by the exam."""

from __future__ import annotations

from collections.abc import Iterable

from harness import Verdict

from .ranking import Rank, rank
from .state import AttemptState, Confirmation


def contenders(attempts: Iterable[AttemptState]) -> list[AttemptState]:
    """Returns the correct attempts that no person rejected, best first; the exam uses this order.

    Of equal attempts the earlier comes first.
    """
    correct = [attempt for attempt in _not_rejected(attempts) if attempt.verdict is Verdict.CORRECT]
    return sorted(correct, key=_rank, reverse=True)


def best_of(attempts: Iterable[AttemptState]) -> AttemptState | None:
    """Returns the best judged attempt that no person rejected; `None` if there is none.

    Attempts that were timed again for the exam come first, by that speedup. Attempts that failed the exam come after
    all other correct ones, and before attempts that failed on the open cases.
    """
    # `max` keeps the earlier of equal attempts.
    return max(_not_rejected(attempts), key=place, default=None)


def place(attempt: AttemptState) -> tuple[int, Rank]:
    """Returns the sort key of a judged attempt: (timed again, exam not failed, correct; then rank). Greater is better.

    Raises `ValueError` if it is not judged.
    """
    correct = attempt.verdict is Verdict.CORRECT
    if not correct:
        return 0, _rank(attempt)
    if attempt.exam is not None and attempt.speedup_confirmed is not None:
        # The best of many noisy timings is too good, so a timing that was repeated comes first.
        return 3, _rank(attempt)._replace(speedup=rank(attempt.exam).speedup)
    return 2 if attempt.confirmation is not Confirmation.NOT_CONFIRMED else 1, _rank(attempt)


def _rank(attempt: AttemptState) -> Rank:
    if attempt.evaluation is None:
        raise ValueError(f"{attempt.attempt} is not judged")
    return rank(attempt.evaluation, attempt.source or "")


def _not_rejected(attempts: Iterable[AttemptState]) -> list[AttemptState]:
    """Judged attempts that no person rejected."""
    return [
        attempt
        for attempt in attempts
        if attempt.evaluation is not None and (attempt.decision is None or attempt.decision.accepted)
    ]

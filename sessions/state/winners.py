"""Selects the best attempts, by rank, by decisions of people, and by the exam."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from harness import Verdict

from .ranking import Rank
from .state import AttemptState, Confirmation, InstanceState, SessionState


def contenders(attempts: Iterable[AttemptState]) -> list[AttemptState]:
    """Returns the correct attempts that no person rejected, best first; the exam uses this order.

    Of equal attempts the earlier comes first.
    """
    pairs = [(attempt, attempt.judged) for attempt in _not_rejected(attempts)]
    correct = [
        (attempt, judged.rank) for attempt, judged in pairs if judged and judged.verdict is Verdict.CORRECT
    ]
    return [attempt for attempt, _ in sorted(correct, key=itemgetter(1), reverse=True)]


def best_of(attempts: Iterable[AttemptState]) -> AttemptState | None:
    """Returns the best judged attempt that no person rejected; `None` if there is none.

    Attempts that were timed again for the exam come first, by that speedup. Attempts that failed the exam come after
    all other correct ones, and before attempts that failed on the open cases.
    """
    # `max` keeps the earlier of equal attempts.
    return max(_not_rejected(attempts), key=place, default=None)


def bests_by_task(state: SessionState) -> dict[str, AttemptState]:
    """Returns the best judged attempt of each task that has one, correct or not: the best of its instances' bests."""
    bests: dict[str, list[AttemptState]] = {}
    for instance in state.instances.values():
        if (best := instance.best_attempt) is not None:
            bests.setdefault(instance.task, []).append(best)
    return {task: best for task, attempts in bests.items() if (best := best_of(attempts)) is not None}


def confirmed_tasks(state: SessionState, tasks: Iterable[str]) -> tuple[str, ...] | None:
    """Returns the tasks (full names) with a confirmed best attempt; `None` if no attempt of these tasks was examined."""
    tasks, bests = tuple(tasks), bests_by_task(state)
    attempts = (
        attempt for chain in state.instances.values() if chain.task in tasks for attempt in chain.attempts
    )
    if all(attempt.confirmation is Confirmation.NOT_EXAMINED for attempt in attempts):
        return None
    return tuple(
        task for task in tasks if task in bests and bests[task].confirmation is Confirmation.CONFIRMED
    )


def earlier_best(attempt: AttemptState, instance: InstanceState) -> AttemptState | None:
    """Returns the best correct attempt of the instance before this attempt that no person rejected."""
    earlier = [before for before in instance.attempts if before.number < attempt.number]
    best = best_of(earlier)
    return best if best is not None and best.verdict is Verdict.CORRECT else None


def accepted_attempt(state: SessionState, task: str) -> AttemptState | None:
    """Returns the attempt of a task (full name) that was accepted last: its kernel is the session's on `accepted`."""
    accepted = [
        attempt
        for instance in state.instances.values()
        if instance.task == task
        for attempt in instance.attempts
        if attempt.accepted
    ]
    return max(accepted, key=lambda attempt: attempt.decision.wall if attempt.decision else 0.0, default=None)


def place(attempt: AttemptState) -> tuple[int, Rank]:
    """Returns the sort key of a judged attempt: (timed again, exam not failed, correct; then rank). Greater is better.

    Raises `ValueError` if it is not judged.
    """
    if attempt.judged is None:
        raise ValueError(f"{attempt.attempt} is not judged")
    rank = attempt.judged.rank
    if attempt.verdict is not Verdict.CORRECT:
        return 0, rank
    if attempt.examined is not None and attempt.is_timed_again:
        # The best of many noisy timings is too good, so a timing that was repeated comes first.
        return 3, rank._replace(speedup=attempt.examined.rank.speedup)
    return 2 if attempt.confirmation is not Confirmation.NOT_CONFIRMED else 1, rank


def _not_rejected(attempts: Iterable[AttemptState]) -> list[AttemptState]:
    """Judged attempts that no person rejected."""
    return [attempt for attempt in attempts if attempt.verdict is not None and not attempt.rejected]

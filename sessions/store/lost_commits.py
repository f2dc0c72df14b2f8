"""Finds attempts with a lost object in their commit, so that they are committed again."""

from __future__ import annotations

from collections.abc import Iterable

from sessions.state.state import AttemptState, InstanceState, SessionState

from .store import Store


def committed(instance: InstanceState) -> list[AttemptState]:
    """Returns the attempts with a commit, in the order of their commits."""
    return sorted(
        (attempt for attempt in instance.attempts if attempt.commit is not None),
        key=lambda attempt: attempt.committed_seq,
    )


def commits_of(state: SessionState) -> list[str]:
    """Returns the commits of all attempts."""
    return [attempt.commit for attempt in state.attempts() if attempt.commit is not None]


def lost_attempts(store: Store, instances: Iterable[InstanceState]) -> list[AttemptState]:
    """Returns each instance's first attempt with a lost object and all that were committed after it.

    So the commits follow each other again, and the branch ends at the last one.
    """
    lost: list[AttemptState] = []
    for instance in instances:
        attempts = committed(instance)
        for place, attempt in enumerate(attempts):
            if not store.repository.is_whole(attempt.commit or ""):
                lost += attempts[place:]
                break
    return lost

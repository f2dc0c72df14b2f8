"""Finds attempts by name; what the store keeps of a decision about one."""

from __future__ import annotations

from sessions.errors import CommandRefused, NoSuchAttempt
from sessions.names import split_attempt
from sessions.state.state import AttemptState, InstanceState, SessionState

from .store import AcceptedKernel


def find_attempt(state: SessionState, attempt: str) -> tuple[AttemptState, InstanceState]:
    """Returns the attempt of this name and its instance; `NoSuchAttempt` with similar names if there is none."""
    try:
        return state.attempt(attempt), state.instances[split_attempt(attempt).instance]
    except KeyError:
        raise NoSuchAttempt(attempt, [entry.attempt for entry in state.attempts()]) from None


def accepted_kernel(session: str, state: SessionState, attempt: str) -> AcceptedKernel:
    """Returns `decision.json` for the current, or just undone, decision about a judged attempt."""
    judged, _ = find_attempt(state, attempt)
    decision = judged.decision
    if judged.evaluation is None:
        raise CommandRefused(f"{attempt} is not judged")
    return AcceptedKernel(
        session=session,
        attempt=attempt,
        commit=judged.commit or "",
        why=decision.why if decision else "",
        by=decision.by if decision else "",
        wall=decision.wall if decision else state.last_wall or 0.0,
        verdict=judged.evaluation.verdict,
    )

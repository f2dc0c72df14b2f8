"""Which decisions about attempts are possible, and what the store keeps of them."""

from __future__ import annotations

import difflib

from harness import Verdict
from sessions.errors import NoSuchAttempt, NotDecidable
from sessions.events import DecisionMade, DecisionUndone
from sessions.names import split_attempt
from sessions.state.state import AttemptState, InstanceState, SessionState

from .store import AcceptedKernel


def find_attempt(state: SessionState, attempt: str) -> tuple[AttemptState, InstanceState]:
    """Returns the attempt of this name and its instance; `NoSuchAttempt` with similar names if there is none."""
    try:
        return state.attempt(attempt), state.instances[split_attempt(attempt).instance]
    except KeyError:
        names = [candidate.attempt for candidate in state.attempts()]
        raise NoSuchAttempt(attempt, nearest=difflib.get_close_matches(attempt, names, n=3)) from None


def check_decision(state: SessionState, decision: DecisionMade | DecisionUndone) -> None:
    """Raise `NoSuchAttempt` or `NotDecidable` if the decision is impossible in this state."""
    attempt, _ = find_attempt(state, decision.attempt)
    if attempt.evaluation is None:
        raise NotDecidable(f"{decision.attempt} is not judged yet; decide when it has a verdict")
    if isinstance(decision, DecisionUndone):
        if attempt.decision is None:
            raise NotDecidable(f"there is no decision about {decision.attempt} to undo")
    elif decision.accepted and attempt.verdict is not Verdict.CORRECT:
        if not decision.forced:
            raise NotDecidable(
                f"{decision.attempt} is {attempt.verdict}, and only a correct attempt can be accepted; "
                "choose a correct one, or give --force and the reason with --why"
            )
        if not decision.why.strip():
            raise NotDecidable(
                f"{decision.attempt} is {attempt.verdict}; to accept it anyway, give the reason with --why"
            )


def accepted_kernel(session: str, state: SessionState, attempt: str) -> AcceptedKernel:
    """Returns `decision.json` for the current, or just undone, decision about a judged attempt."""
    judged, _ = find_attempt(state, attempt)
    decision = judged.decision
    if judged.evaluation is None:
        raise NotDecidable(f"{attempt} is not judged")
    return AcceptedKernel(
        session=session,
        attempt=attempt,
        commit=judged.commit or "",
        why=decision.why if decision else "",
        by=decision.by if decision else "",
        wall=decision.wall if decision else state.last_wall or 0.0,
        verdict=judged.evaluation.verdict,
    )

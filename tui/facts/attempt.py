"""Phrases about one attempt: where it comes from, and what a person decided."""

from __future__ import annotations

from sessions.events import DecisionMade
from sessions.state.state import AttemptState, Decision


def origin_words(attempt: AttemptState, base: str = "") -> str:
    """Return `fresh`, or `optimize of softmax#3/5`; `base` is another name of the base."""
    return f"{attempt.origin}" + (f" of {base or attempt.base}" if attempt.base else "")


def decision_words(decision: Decision | DecisionMade) -> str:
    """Return `accepted by kim: readable`."""
    why = f": {decision.why}" if decision.why else ""
    return f"{'accepted' if decision.accepted else 'rejected'} by {decision.by}{why}"

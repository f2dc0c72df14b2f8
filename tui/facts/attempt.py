"""Phrases about one attempt: where it comes from, what it gained, and what a person decided."""

from __future__ import annotations

from sessions.events import DecisionMade
from sessions.state.speed import attempt_speed, gain, is_apart
from sessions.state.state import AttemptState, Decision, InstanceState
from sessions.state.winners import earlier_best
from tui.facts.vocabulary import UNKNOWN, percent_change


def origin_words(attempt: AttemptState, base: str = "") -> str:
    """Return `fresh`, or `optimize of softmax#3/5`; `base` is another name of the base."""
    return f"{attempt.origin}" + (f" of {base or attempt.base}" if attempt.base else "")


def gain_words(attempt: AttemptState, instance: InstanceState) -> str:
    """Return the gain on the instance's earlier best: `+6 %`, `first` without one, or `-` if nothing was measured.

    `apart` if other hardware or software timed the earlier best.
    """
    speed, before = attempt_speed(attempt), earlier_best(attempt, instance)
    if before is None:
        return UNKNOWN if speed is None else "first"
    return "apart" if is_apart(attempt, before) else percent_change(gain(attempt, before))


def decision_words(decision: Decision | DecisionMade) -> str:
    """Return `accepted by kim: readable`."""
    why = f": {decision.why}" if decision.why else ""
    return f"{'accepted' if decision.accepted else 'rejected'} by {decision.by}{why}"

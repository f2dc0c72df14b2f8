"""What an attempt and a session are worth in one styled phrase: verdict, speedup or estimate, state."""

from __future__ import annotations

import math

from harness import Evaluation, Verdict
from sessions.state import SessionState
from tui.cockpit.lines import Span


def verdict_style(verdict: Verdict | None) -> str:
    """The style word that goes with a verdict's letter."""
    if verdict is None:
        return "busy"
    if verdict is Verdict.CORRECT:
        return "good"
    return "bad" if verdict.counted else "dim"


def roof_factor(evaluation: Evaluation, target: str | None) -> float | None:
    """Upper over lower bound of the roofline estimates, geometric mean over cases: an estimate, never a measurement.

    Only cases of `target` count, or of the first target there is an estimate for when it has none. `None` without estimates.
    """
    known = [each for each in evaluation.estimate if each.low_us > 0 and each.high_us > 0]
    names = [each.target for each in known]
    chosen = target if target in names else names[0] if names else None
    ratios = [each.high_us / each.low_us for each in known if each.target == chosen]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def session_word(state: SessionState) -> Span:
    """What the session does, as the events tell it."""
    if state.finished:
        return Span("finished", "dim")
    if state.stopped is not None:
        return Span(f"stopped ({state.stopped})", "warn")
    if state.started is None:
        return Span("no events yet", "dim")
    if "" in state.on_hold:
        return Span("paused", "warn")
    waiting = sum(instance.word == "person" for instance in state.instances.values())
    return Span(f"running, {waiting} wait for you", "warn") if waiting else Span("running", "busy")

"""Style words of verdicts and speeds: the same colour for the same thing on every screen."""

from __future__ import annotations

from harness import Verdict
from sessions.state.speed import Speed


def verdict_style(verdict: Verdict | None) -> str:
    """Return the style word of a verdict's letter."""
    if verdict is None:
        return "busy"
    if verdict is Verdict.CORRECT:
        return "good"
    return "bad" if verdict.counted else "dim"


def speed_style(speed: Speed | None) -> str:
    """Return `good` if the whole interval is above 1, `bad` if it is below 1, else the plain style."""
    return "" if speed is None else "good" if speed.is_gain else "bad" if speed.is_loss else ""

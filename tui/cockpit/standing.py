"""What an attempt and a session are worth in one styled phrase: verdict, speedup or estimate, state."""

from __future__ import annotations

from harness import Verdict
from sessions.state.speed import Speed
from sessions.state.state import SessionState
from tui.cockpit.lines import Span


def verdict_style(verdict: Verdict | None) -> str:
    """The style word that goes with a verdict's letter."""
    if verdict is None:
        return "busy"
    if verdict is Verdict.CORRECT:
        return "good"
    return "bad" if verdict.counted else "dim"


def speed_style(speed: Speed | None) -> str:
    """Return `good` if the whole interval is above 1, `bad` if it is below 1, else the plain style."""
    return "" if speed is None else "good" if speed.is_gain else "bad" if speed.is_loss else ""


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

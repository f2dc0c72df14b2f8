"""The state of a session in one styled phrase."""

from __future__ import annotations

from sessions.state import SessionState
from tui.cockpit.lines import Span


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

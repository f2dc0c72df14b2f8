"""Decisions of a person about sessions that are not running; a running session's engine takes them on its socket."""

from __future__ import annotations

from sessions.events import DecisionMade, DecisionUndone, Event
from sessions.home import Home
from sessions.journal.journal import Clock

from .reconcile import take_up


def decide(
    home: Home,
    session: str,
    attempt: str,
    *,
    accepted: bool,
    why: str = "",
    by: str = "",
    forced: bool = False,
    clock: Clock | None = None,
) -> Event:
    """Accept or reject an attempt; returns the event, which is then in the journal, in git and on `accepted`.

    Raises `SessionBusy` while an engine has the session, `NoSuchSession`, `NoSuchAttempt` or `NotDecidable`.
    """
    decision = DecisionMade(attempt=attempt, accepted=accepted, why=why, by=by, forced=forced)
    return _record(home, session, decision, clock)


def undo(home: Home, session: str, attempt: str, *, by: str = "", clock: Clock | None = None) -> Event:
    """Undo the current decision about an attempt; raises errors as `decide`."""
    return _record(home, session, DecisionUndone(attempt=attempt, by=by), clock)


def _record(home: Home, session: str, decision: DecisionMade | DecisionUndone, clock: Clock | None) -> Event:
    with take_up(home, session, clock=clock) as recorder:
        try:
            return recorder.now(recorder.decide(decision))
        finally:
            recorder.now(recorder.put_down())

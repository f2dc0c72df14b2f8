"""A person's decisions about sessions that nothing runs; a running session's go through its engine's socket."""

from __future__ import annotations

from .events import DecisionMade, DecisionUndone, Event
from .home import Home
from .journal import Clock
from .reconcile import take_up


def decide(
    home: Home,
    session: str,
    attempt: str,
    *,
    accepted: bool,
    why: str = "",
    by: str = "",
    clock: Clock | None = None,
) -> Event:
    """Accept or reject an attempt and return the event, which is in the journal, in git and on `accepted` then.

    `SessionBusy` while an engine has the session, `NoSuchSession`, `NoSuchAttempt`, `NotDecidable`.
    """
    return _put(home, session, DecisionMade(attempt=attempt, accepted=accepted, why=why, by=by), clock)


def undo(home: Home, session: str, attempt: str, *, by: str = "", clock: Clock | None = None) -> Event:
    """Take the standing decision about an attempt back; errors as `decide`."""
    return _put(home, session, DecisionUndone(attempt=attempt, by=by), clock)


def _put(home: Home, session: str, decision: DecisionMade | DecisionUndone, clock: Clock | None) -> Event:
    with take_up(home, session, clock=clock) as recorder:
        try:
            return recorder.decide_now(decision)
        finally:
            if recorder.state.finished:
                recorder.finish_now()
            else:
                recorder.flush_now()

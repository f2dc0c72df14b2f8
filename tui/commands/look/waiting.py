"""`wavedeck status --wait`: return when an attempt of a session waits for a person, or when the session ended."""

from __future__ import annotations

import time

from sessions import JournalTail, SessionState
from sessions.listing.skimming import DETAILS
from sessions.state.folding import apply
from tui.commands.opening import open_session
from tui.diagnostics import ExitCode, say
from tui.facts.vocabulary import duration, not_stored
from tui.print.plain import emit

POLL_S = 0.2
"""Seconds between two looks; a look costs a few system calls if nothing is new."""


def wait_for(session: str | None, goal: str, timeout: float | None) -> ExitCode:
    """Wait until an attempt waits for a decision (`review`), or until no engine runs the session (`end`).

    Prints the attempts that wait. `timeout` is in seconds. Returns `NO` if the session ended without it, or after the
    timeout, and `FAILED` if its engine is gone.
    """
    opened = open_session(session)
    home, name = opened
    state = SessionState()
    limit = None if timeout is None else time.monotonic() + timeout
    with JournalTail(home.files(name).journal) as tail:
        while True:
            # Check the lock before reading: then no event of an engine that released the lock is lost.
            running = home.files(name).running
            new_events = tail.read_new()
            state.journal = tail.reader
            for event in new_events:
                if not isinstance(event, DETAILS):
                    apply(state, event)
            waiting = [attempt.attempt for attempt in state.attempts() if attempt.waiting]
            if goal == "review" and waiting and running:
                emit("\n".join(waiting))
                return ExitCode.DONE
            if not running:
                if state.started is None:
                    # It moved to the store before the first look.
                    state = opened.state
                if state.finished and home.files(name).journal.exists():
                    say(not_stored(name))
                    return ExitCode.FAILED
                return say_end(name, state, goal)
            if limit is not None and time.monotonic() >= limit:
                say(f"{name} still runs after {duration(timeout)}")
                return ExitCode.NO
            time.sleep(POLL_S)


def say_end(session: str, state: SessionState, goal: str) -> ExitCode:
    """Print how the session ended; return the exit code."""
    if not state.finished and state.stopped is None:
        say(f"the engine of {session} ended without a message; go on with: wavedeck resume {session}")
        return ExitCode.FAILED
    ended = "finished" if state.finished else "stopped"
    if goal == "end":
        say(f"{session} {ended}")
        return ExitCode.DONE
    say(f"{session} {ended}; no attempt waits for a decision")
    return ExitCode.NO

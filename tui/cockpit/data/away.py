"""What happened in a session since a person last watched it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from sessions.home import Home
from sessions.state.state import SessionState
from tui.facts.vocabulary import counted


class LastWatched(msgspec.Struct, frozen=True):
    """How far a person saw a session."""

    seq: int
    """Number of the last event."""


def remember(home: Home, session: str, state: SessionState) -> None:
    """Keep how far the person saw a session that goes on; the file goes with its live folder."""
    path = _file(home, session)
    if path.parent.is_dir() and state.last_seq:
        path.write_bytes(msgspec.json.encode(LastWatched(state.last_seq)))


def last_watched(home: Home, session: str) -> int:
    """Return the number of the last event that the person saw; 0 if the person never watched the session."""
    try:
        return msgspec.json.decode(_file(home, session).read_bytes(), type=LastWatched).seq
    except (OSError, msgspec.DecodeError):
        return 0


def away_words(state: SessionState, seq: int) -> str:
    """Return `while you were away: 14 attempts, 2 new bests, 1 waits for you`; empty if nothing happened since `seq`."""
    attempts = [attempt for attempt in state.attempts() if attempt.judged_seq > seq]
    bests = sum(
        instance.best in {attempt.attempt for attempt in attempts} and instance.solved
        for instance in state.instances.values()
    )
    waiting = sum(attempt.waiting for attempt in state.attempts())
    waits = "not decided" if state.stopped else "waits for you" if waiting == 1 else "wait for you"
    parts = [
        counted(len(attempts), "attempt") if attempts else "",
        counted(bests, "new best") if bests else "",
        f"{waiting} {waits}" if waiting else "",
    ]
    return f"while you were away: {', '.join(filter(None, parts))}" if seq and attempts else ""


def _file(home: Home, session: str) -> Path:
    return home.live(session).folder / "last_watched.json"

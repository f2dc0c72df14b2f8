"""The size of a session on the disk and its last error, for the preview of Home."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from harness import Verdict
from sessions.errors import SessionsError
from sessions.events import AnyEvent, AttemptJudged, CallFailed, EndReason, EngineStopped, Notice
from sessions.home import Home
from sessions.journal.codec import Skipped, decode
from sessions.journal.file import JournalFile
from tui.facts.evaluation.verdict import failure_words

TAIL_BYTES = 1 << 20
"""An error further back from the end of a journal is not looked for."""


class Details(NamedTuple):
    """Facts that are read from the session's folder."""

    size_bytes: int = 0
    last_error: str = ""


def read_details(home: Home, session: str) -> Details:
    """Return the details of a session, as far as its folder can be read. Reads at most the end of its journal; blocks."""
    files = home.files(session)
    try:
        size = sum(_size(path) for path in files.folder.rglob("*"))
        with JournalFile(files.journal) as journal:
            lines = journal.read(max(journal.size - TAIL_BYTES, 0), TAIL_BYTES).split(b"\n")
    except (OSError, SessionsError):
        return Details()
    return Details(size, next(filter(None, map(_error, map(decode, reversed(lines)))), ""))


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _error(event: AnyEvent | Skipped) -> str:
    """Return what went wrong with an event; empty for any other."""
    match event:
        case Notice(level="error"):
            return event.message
        case EngineStopped(failed=True):
            return event.reason
        case CallFailed(reason=reason) if reason != EndReason.RECORDING_EXHAUSTED:
            return f"{event.reason}: {event.message}"
        case AttemptJudged() if event.evaluation.verdict is not Verdict.CORRECT:
            return f"{event.attempt} {failure_words(event.evaluation)}"
    return ""

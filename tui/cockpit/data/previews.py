"""The size of a session on the disk, its last error and its traffic, for the preview of Home."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from harness import Evaluation, Verdict
from sessions.errors import SessionsError
from sessions.events import AnyEvent, AttemptJudged, CallFailed, EndReason, EngineStopped, Notice
from sessions.home import Home
from sessions.journal.codec import Skipped, decode, tag_of
from sessions.journal.file import JournalFile
from tui.facts.evaluation.counted import traffic_change
from tui.facts.evaluation.verdict import failure_words

JUDGED = b'{"type":"%s"' % tag_of(AttemptJudged).encode()
TAIL_BYTES = 8 << 20
"""An event further back from the end of a journal is not looked for."""


class Details(NamedTuple):
    """Facts that are read from the session's folder."""

    size_bytes: int = 0
    last_error: str | None = None
    """Empty if there was none; `None` if the end of a long journal has none."""
    traffic: Mapping[str, str] = MappingProxyType({})
    """`2.00 -> 1.00x` by attempt: from the first correct attempt of its task; none of a long journal."""


def read_details(home: Home, session: str) -> Details:
    """Return the details of a session, as far as its folder can be read. Reads at most the end of its journal; blocks."""
    files = home.files(session)
    try:
        size = sum(_size(path) for path in files.folder.rglob("*"))
        with JournalFile(files.journal) as journal:
            start = max(journal.size - TAIL_BYTES, 0)
            lines = journal.read(start, TAIL_BYTES).split(b"\n")
    except (OSError, SessionsError):
        return Details()
    error = next(filter(None, map(_error, map(decode, reversed(lines)))), None if start else "")
    return Details(size, error, {} if start else _traffic(lines))


def _traffic(lines: Iterable[bytes]) -> dict[str, str]:
    first: dict[str, Evaluation] = {}
    traffic: dict[str, str] = {}
    for event in map(decode, (line for line in lines if line.startswith(JUDGED))):
        if isinstance(event, AttemptJudged) and event.evaluation.verdict is Verdict.CORRECT:
            before = first.setdefault(event.attempt.partition("#")[0], event.evaluation)
            words = traffic_change(before, event.evaluation)
            traffic[event.attempt] = words.removeprefix("traffic ").replace("x ->", " ->")
    return traffic


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

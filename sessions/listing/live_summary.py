"""`live/<session>/summary.msgpack`: what a list shows of a long journal, so that it does not read the journal.

The engine writes it as it goes; a list writes it after it folded the journal of a dead engine. It is a cache: a file that does
not belong to the journal, or that a version with different fields wrote, is ignored.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import BinaryIO

import msgspec

from sessions.files import write_whole
from sessions.home import LiveFiles
from sessions.settings import SessionDescription
from sessions.state.state import Preparation, SessionState

from .description import SessionSummary, summarise
from .skimming import SUMMARY

LONG_BYTES = 1 << 20
"""A shorter journal is folded in milliseconds and needs no summary."""
END_BYTES = 256
MOST_LAG_S = 60.0
"""The summary of a running session counts if the last event that it has is at most so much older than the journal."""


class LiveSummary(msgspec.Struct, frozen=True):
    """The facts of a list about the first `size` bytes of a journal."""

    version: str
    size: int
    end: bytes
    """The last of these bytes; a journal with others there is not the one that was folded."""
    started: SessionDescription | None
    summary: SessionSummary
    preparing: tuple[Preparation, ...]


MEANING = 1
"""Raise it if a field gets another meaning without another type."""
_KINDS = (LiveSummary, SessionSummary, SessionDescription)
VERSION = hashlib.sha256(
    repr((MEANING, [msgspec.structs.fields(kind) for kind in _KINDS])).encode()
).hexdigest()[:16]
_DECODER: msgspec.msgpack.Decoder[LiveSummary] = msgspec.msgpack.Decoder(LiveSummary)


def live_summary(files: LiveFiles, state: SessionState, size: int) -> LiveSummary:
    """Returns the summary of a state, the fold of the first `size` bytes of the live journal."""
    with files.journal.open("rb") as journal:
        end = _end(journal, size)
    return LiveSummary(VERSION, size, end, state.started, summarise(state), state.preparing)


def keep_summary(files: LiveFiles, live: LiveSummary) -> None:
    """Write the summary of a long journal; a folder that cannot be written costs only time."""
    if live.size >= LONG_BYTES:
        with suppress(OSError):
            write_whole(files.summary, msgspec.msgpack.encode(live), mode=0o600)


def kept_summary(files: LiveFiles, journal: BinaryIO, *, running: bool) -> LiveSummary | None:
    """Returns the summary that was written, if it has all that lists show of the open journal; `None` if not.

    While an engine runs, the last seconds may be missing.
    """
    status = os.fstat(journal.fileno())
    if status.st_size < LONG_BYTES:
        return None
    try:
        live = _DECODER.decode(files.summary.read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
    if live.version != VERSION or live.size > status.st_size or live.end != _end(journal, live.size):
        return None
    if running and status.st_mtime - (live.summary.last_wall or 0.0) < MOST_LAG_S:
        return live
    lines = (line for line in journal if line.endswith(b"\n"))
    return None if any(map(SUMMARY.needs, lines)) else live


def _end(journal: BinaryIO, size: int) -> bytes:
    """Return the last bytes before `size`; the journal is then read from there."""
    start = max(0, size - END_BYTES)
    journal.seek(start)
    return journal.read(size - start)

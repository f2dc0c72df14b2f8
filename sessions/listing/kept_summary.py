"""`sessions/<session>/summary.msgpack`: what a list shows of a finished session, or of a long journal, without its journal.

The engine writes it as it goes; a list writes it after it folded the journal of a dead engine. It is a cache: a file that does
not belong to the journal, or that a version with different fields wrote, is ignored.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import BinaryIO

import msgspec

from sessions.files import read_regular, write_whole
from sessions.home import SessionFiles
from sessions.settings import SessionDescription
from sessions.state.state import Preparation, SessionState

from .description import SessionSummary, summarise
from .skimming import SUMMARY

LONG_BYTES = 1 << 20
"""A shorter journal is folded in milliseconds and needs no summary."""
END_BYTES = 256
MOST_LAG_S = 60.0
"""The summary of a running session counts if the last event that it has is at most so much older than the journal."""


class KeptSummary(msgspec.Struct, frozen=True):
    """The facts of a list about the first `size` bytes of a journal's file, in either form."""

    version: str
    size: int
    end: bytes
    """The last of these bytes; a file with others there is not the one that was folded."""
    started: SessionDescription | None
    summary: SessionSummary
    preparing: tuple[Preparation, ...]


MEANING = 1
"""Raise it if a field gets another meaning without another type."""
_KINDS = (KeptSummary, SessionSummary, SessionDescription)
VERSION = hashlib.sha256(
    repr((MEANING, [msgspec.structs.fields(kind) for kind in _KINDS])).encode()
).hexdigest()[:16]
_DECODER: msgspec.msgpack.Decoder[KeptSummary] = msgspec.msgpack.Decoder(KeptSummary)


def summary_of(state: SessionState, journal: BinaryIO, size: int) -> KeptSummary:
    """Returns the summary of a state, the fold of the first `size` bytes of an open journal's file."""
    return KeptSummary(VERSION, size, _end(journal, size), state.started, summarise(state), state.preparing)


def keep_summary(files: SessionFiles, kept: KeptSummary) -> None:
    """Write a summary; a folder that cannot be written costs only time."""
    with suppress(OSError):
        write_whole(files.summary, msgspec.msgpack.encode(kept), mode=0o600)


def kept_summary(
    files: SessionFiles, journal: BinaryIO, *, stored: bool, running: bool
) -> KeptSummary | None:
    """Returns the summary that was written, if it has all that lists show of the open journal; `None` if not.

    A `stored` journal is compressed. While an engine runs, the last seconds may be missing.
    """
    status = os.fstat(journal.fileno())
    if status.st_size < LONG_BYTES and not stored:
        return None
    try:
        kept = _DECODER.decode(read_regular(files.summary))
    except (OSError, msgspec.DecodeError):
        return None
    if kept.version != VERSION or kept.size > status.st_size or kept.end != _end(journal, kept.size):
        return None
    if stored:
        return kept if kept.size == status.st_size else None
    if running and status.st_mtime - (kept.summary.last_wall or 0.0) < MOST_LAG_S:
        return kept
    lines = (line for line in journal if line.endswith(b"\n"))
    return None if any(map(SUMMARY.needs, lines)) else kept


def _end(journal: BinaryIO, size: int) -> bytes:
    """Return the last bytes before `size`; the file is then read from there."""
    start = max(0, size - END_BYTES)
    journal.seek(start)
    return journal.read(size - start)

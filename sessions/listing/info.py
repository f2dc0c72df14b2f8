"""The facts of one session that lists show, from its summary or the end of its journal; reads no git."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import BinaryIO

import msgspec

from sessions.errors import JournalNotReadable
from sessions.files import open_regular
from sessions.home import Home, SessionFiles, file_mark
from sessions.journal.codec import flat
from sessions.journal.file import JournalFile
from sessions.journal.reader import JournalReader
from sessions.settings import RunSettings, SessionDescription
from sessions.state.state import Preparation, SessionState

from .description import SessionResults, SessionSummary
from .kept_summary import LONG_BYTES, KeptSummary, keep_summary, kept_summary, summary_of
from .skimming import SUMMARY, skim_lines


class Standing(StrEnum):
    """The status of a session."""

    RUNNING = "running"
    """An engine holds its lock."""
    FINISHED = "finished"
    """It is in the store."""
    UNSTORED = "not stored"
    """Finished, but not in the store; a resume brings it there."""
    STOPPED = "stopped"
    """Its engine stopped in good order; it can be resumed."""
    CRASHED = "crashed"
    """Its engine ended without a final event; it can be resumed."""
    DAMAGED = "damaged"
    """The store lost a part of it; `SessionInfo.problem` says which, and what to do."""


class SessionInfo(SessionResults, frozen=True, kw_only=True):
    """One line of a list of sessions: its settings and its results."""

    name: str
    state: Standing
    settings: RunSettings
    """The settings of its start; the line's own `title` is the current one."""
    problem: str = ""
    """What is wrong with a damaged session, and what to do."""
    started: float | None = None
    """Seconds since the epoch, UTC."""
    last: float | None = None
    """Time of its last event."""
    putting_away_since: float | None = None
    """Time since which its engine puts it away; `None` if its engine still works, or none runs."""
    preparing: tuple[Preparation, ...] = ()
    """Steps before the first model call of a task that its engine works on."""

    def document(self) -> dict[str, object]:
        """Returns the line's JSON: settings and results among the other fields."""
        return flat(self) | {"title": self.title}


UNKNOWN = RunSettings(
    method="", model="", tasks=(), instances=0, iterations=0, seed=0, devices=(), targets=(), review=""
)
"""Settings of a session that lost its description."""


def info_of(
    name: str, description: SessionDescription | None, summary: SessionSummary, *, running: bool
) -> SessionInfo:
    """Returns the facts of a session from its description and its summary."""
    if running:
        standing = Standing.RUNNING
    elif summary.finished:
        standing = Standing.FINISHED
    else:
        standing = Standing.STOPPED if summary.stopped is not None else Standing.CRASHED
    settings = UNKNOWN if description is None else RunSettings(**description.settings())
    return SessionInfo(
        name=name,
        state=standing,
        settings=settings,
        started=None if description is None else description.started,
        last=summary.last_wall,
        **{field: getattr(summary, field) for field in SessionResults.__struct_fields__},
    )


def damaged_info(name: str, problem: str) -> SessionInfo:
    """Returns the line of a session whose journal, description or summary cannot be read."""
    return SessionInfo(name=name, state=Standing.DAMAGED, settings=UNKNOWN, problem=problem)


class ListedSession:
    """A session with a folder; each reading of its facts reads only what is new in its journal."""

    def __init__(self, files: SessionFiles) -> None:
        self._files = files
        self._inode = 0
        self._reader: JournalReader | None = None
        self._state = SessionState()
        self._stored: tuple[tuple[int, int, int], SessionInfo] | None = None
        """The facts of a stored session, with the mark of its journal."""

    def info(self) -> SessionInfo | None:
        """Returns the facts; `None` if the folder has no journal: nothing was recorded, or it is being removed."""
        files = self._files
        running = files.running
        try:
            with os.fdopen(open_regular(files.journal), "rb") as journal:
                kept = self._read(journal, running=running)
        except FileNotFoundError:
            return self._stored_info()
        except OSError as error:
            return damaged_info(files.session, str(JournalNotReadable(files.journal, error)))
        summary = kept.summary
        info = info_of(files.session, kept.started, summary, running=running)
        if running and files.reachable and (summary.finished or summary.stopped is not None):
            return msgspec.structs.replace(info, putting_away_since=summary.last_wall)
        if running:
            return msgspec.structs.replace(info, preparing=kept.preparing)
        if info.state is Standing.FINISHED:
            return msgspec.structs.replace(info, state=Standing.UNSTORED)
        return info

    def _read(self, journal: BinaryIO, *, running: bool) -> KeptSummary:
        """Return what the summary beside the journal has, if it is new enough; else fold what is new in the journal."""
        kept = (
            kept_summary(self._files, journal, stored=False, running=running)
            if self._reader is None
            else None
        )
        if kept is not None:
            return kept
        with JournalFile(self._files.journal) as file:
            inode = file.status.st_ino
            if self._reader is None or inode != self._inode or file.size < self._reader.size:
                self._inode, self._reader, self._state = inode, JournalReader(file), SessionState()
            # The file is open only while it is read: a summary needs no large values.
            self._reader.file = file
            skim_lines(self._state, self._reader, SUMMARY)
        made = summary_of(self._state, journal, self._reader.size)
        if made.size >= LONG_BYTES and not running:
            keep_summary(self._files, made)
        return made

    def _stored_info(self) -> SessionInfo | None:
        """Return the facts of a session of which the store has all; `None` if there is no journal."""
        files = self._files
        mark = file_mark(files.stored_journal)
        if self._stored is None or self._stored[0] != mark:
            try:
                kept = stored_summary(files)
            except FileNotFoundError:
                return None
            except (OSError, JournalNotReadable) as error:
                why = JournalNotReadable(files.stored_journal, error) if isinstance(error, OSError) else error
                return damaged_info(files.session, str(why))
            self._stored = mark, info_of(files.session, kept.started, kept.summary, running=False)
        return self._stored[1]


def stored_summary(files: SessionFiles) -> KeptSummary:
    """Returns the summary of a session with a compressed journal, which it folds only once.

    Raises `OSError` or `JournalNotReadable`.
    """
    with os.fdopen(open_regular(files.stored_journal), "rb") as packed:
        kept = kept_summary(files, packed, stored=True, running=False)
        if kept is None:
            state = SessionState()
            with JournalFile(files.journal) as journal:
                skim_lines(state, JournalReader(journal), SUMMARY)
            kept = summary_of(state, packed, files.stored_journal.stat().st_size)
            keep_summary(files, kept)
        return kept


def running_infos(home: Home) -> list[SessionInfo]:
    """Returns the sessions that an engine runs, newest first."""
    infos = [ListedSession(files).info() for files in home.session_folders() if files.running]
    return [info for info in reversed(infos) if info is not None]

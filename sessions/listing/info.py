"""The facts of one session that lists show, from its summary or the end of its journal; reads no git."""

from __future__ import annotations

import os
from enum import StrEnum

import msgspec

from sessions.errors import JournalNotReadable
from sessions.files import open_regular
from sessions.home import Home, SessionFiles
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
        self._last: tuple[tuple[int, int, int], SessionInfo] | None = None
        """The facts that were read last of a session at rest, with the mark of its journal."""

    def info(self) -> SessionInfo | None:
        """Returns the facts; `None` if the folder has no journal: nothing was recorded, or it is being removed."""
        files, running, mark = self._files, self._files.running, self._files.journal_mark
        if not running and self._last is not None and self._last[0] == mark:
            return self._last[1]
        try:
            kept, stored = self._read(running=running)
        except FileNotFoundError:
            return None
        except OSError as error:
            return damaged_info(files.session, str(JournalNotReadable(files.journal, error)))
        except JournalNotReadable as error:
            return damaged_info(files.session, str(error))
        # While its lock is held, a compressed journal is whole: its engine ends, or somebody reads.
        running, summary = running and not stored, kept.summary
        info = info_of(files.session, kept.started, summary, running=running)
        if running and files.reachable and (summary.finished or summary.stopped is not None):
            return msgspec.structs.replace(info, putting_away_since=summary.last_wall)
        if running:
            return msgspec.structs.replace(info, preparing=kept.preparing)
        if info.state is Standing.FINISHED and not stored:
            info = msgspec.structs.replace(info, state=Standing.UNSTORED)
        self._last = mark, info
        return info

    def _read(self, *, running: bool) -> tuple[KeptSummary, bool]:
        """Return the kept summary, if it is new enough; else fold what is new in the journal. Also True if that is compressed.

        Raises `OSError` or `JournalNotReadable`.
        """
        files = self._files
        try:
            opened, stored = open_regular(files.journal), False
        except FileNotFoundError:
            opened, stored = open_regular(files.stored_journal), True
        with os.fdopen(opened, "rb") as written:
            if self._reader is None and (
                kept := kept_summary(files, written, stored=stored, running=running)
            ):
                return kept, stored
            with JournalFile(files.journal) as file:
                inode = file.status.st_ino
                if self._reader is None or inode != self._inode or file.size < self._reader.size:
                    self._inode, self._reader, self._state = inode, JournalReader(file), SessionState()
                # The file is open only while it is read: a summary needs no large values.
                self._reader.file = file
                skim_lines(self._state, self._reader, SUMMARY)
            size = os.fstat(opened).st_size if stored else self._reader.size
            made = summary_of(self._state, written, size)
        if stored or (size >= LONG_BYTES and not running):
            keep_summary(files, made)
        return made, stored


def running_infos(home: Home) -> list[SessionInfo]:
    """Returns the sessions that an engine runs, newest first."""
    infos = [ListedSession(files).info() for files in home.session_folders() if files.running]
    return [info for info in reversed(infos) if info is not None]

"""The facts of one session that lists show, from its summary or the end of its journal; reads no git."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import BinaryIO

import msgspec

from sessions.errors import JournalNotReadable
from sessions.home import Home, LiveFiles
from sessions.journal.codec import flat
from sessions.settings import RunSettings, SessionDescription
from sessions.state.state import Preparation, SessionState

from .description import SessionResults, SessionSummary
from .live_summary import LiveSummary, keep_summary, kept_summary, live_summary
from .skimming import SUMMARY, skim_lines


class Standing(StrEnum):
    """The status of a session."""

    RUNNING = "running"
    """An engine holds its lock."""
    FINISHED = "finished"
    """It is in the store."""
    UNSTORED = "not stored"
    """Finished, but not moved to the store; a resume moves it."""
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


class LiveSession:
    """A session with live files; each reading of its facts reads only what is new in its journal."""

    def __init__(self, files: LiveFiles) -> None:
        self._files = files
        self._inode = 0
        self._offset = 0
        self._state = SessionState()

    def info(self) -> SessionInfo | None:
        """Returns the facts; `None` if the folder has no journal: nothing was recorded, or it is being removed."""
        files = self._files
        running = files.running
        try:
            with files.journal.open("rb") as journal:
                live = self._read(journal, running=running)
        except FileNotFoundError:
            return None
        except OSError as error:
            return damaged_info(files.session, str(JournalNotReadable(files.journal, error)))
        summary = live.summary
        info = info_of(files.session, live.started, summary, running=running)
        if running and files.reachable and (summary.finished or summary.stopped is not None):
            return msgspec.structs.replace(info, putting_away_since=summary.last_wall)
        if running:
            return msgspec.structs.replace(info, preparing=live.preparing)
        if info.state is Standing.FINISHED:
            return msgspec.structs.replace(info, state=Standing.UNSTORED)
        return info

    def _read(self, journal: BinaryIO, *, running: bool) -> LiveSummary:
        """Return what the summary beside the journal has, if it is new enough; else fold what is new in the journal."""
        kept = kept_summary(self._files, journal, running=running) if not self._offset else None
        if kept is not None:
            return kept
        status = os.fstat(journal.fileno())
        if status.st_ino != self._inode or status.st_size < self._offset:
            self._inode, self._offset, self._state = status.st_ino, 0, SessionState()
        journal.seek(self._offset)
        self._offset += skim_lines(self._state, journal, SUMMARY)
        live = live_summary(self._files, self._state, self._offset)
        if not running:
            keep_summary(self._files, live)
        return live


def running_infos(home: Home) -> list[SessionInfo]:
    """Returns the sessions that an engine runs, newest first."""
    infos = [LiveSession(files).info() for files in home.live_sessions() if files.running]
    return [info for info in reversed(infos) if info is not None]

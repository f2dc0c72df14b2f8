"""The start and the end of a session and of its engine, and notices to people."""

from __future__ import annotations

import msgspec

from sessions.names import SessionKey
from sessions.settings import RunSettings, SessionDescription

from .base import DurableEvent, Event


class SessionStarted(DurableEvent, frozen=True, kw_only=True, tag="session_started"):
    """First event of a session; the same data as `session.json`.

    Its line in the journal has the fields of `settings` beside the others (`journal.codec`).
    """

    session: SessionKey
    settings: RunSettings
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    templates: dict[str, str] = msgspec.field(default_factory=dict)
    """sha256 of each prompt template, by file name."""

    def describe(self) -> SessionDescription:
        """Returns `session.json` of a session that began with this event."""
        return SessionDescription(
            session=self.session,
            started=self.wall,
            versions=self.versions,
            templates=self.templates,
            **self.settings.settings(),
        )


class EngineStarted(Event, frozen=True, kw_only=True, tag="engine_started"):
    """An engine process opened the session, at its start or at a resume."""

    host: str
    pid: int
    resumed: bool = False


class Notice(Event, frozen=True, kw_only=True, tag="notice"):
    """A message for people that is not a verdict."""

    level: str
    """`info`, `warning` or `error`."""
    message: str


class TaskLeftOut(DurableEvent, frozen=True, kw_only=True, tag="task_left_out"):
    """A named task cannot be judged: the session goes on, and its tasks are the others."""

    task: str
    why: str


class EngineStopped(DurableEvent, frozen=True, kw_only=True, tag="engine_stopped"):
    """The engine left the session unfinished and in good order (stop command, signal, error).

    The session can be resumed.
    """

    reason: str
    failed: bool = False
    """True if no person asked for the stop: model, judge, disk or the engine itself failed."""


class SessionFinished(DurableEvent, frozen=True, kw_only=True, tag="session_finished"):
    """Every instance ended. Decisions may follow, or a command that opens the session again."""

    solved: tuple[str, ...] = ()
    """Tasks with a correct attempt."""

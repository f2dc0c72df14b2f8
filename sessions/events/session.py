"""The start and the end of a session, of its engine and of its instances, and notices to people."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from sessions.names import AttemptKey, SessionKey, TaskName
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


class EndReason(StrEnum):
    """Why an instance ended. `InstanceFinished.reason` is a string, so that an older reader accepts a newer reason."""

    ITERATIONS = "iterations"
    """All iterations are used."""
    SOLVED = "solved"
    """A candidate is correct, and the method does not look for a better one."""
    ANSWERED = "answered"
    """The method asks for one answer, and that answer was judged."""
    JUDGED = "judged"
    """All candidates that existed before the session are judged."""
    SUBMITTED = "submitted"
    """The agent ended its work, or was silent for too long."""
    NOTHING_LEFT = "nothing_left"
    """A sweep has no variant left that is worth judging."""
    START_FAILED = "start_failed"
    """The start kernel of a sweep is not correct."""
    SPEEDUP_REACHED = "speedup_reached"
    """An attempt reached the speedup that the person asked for."""
    AT_ROOF = "at_roof"
    """An attempt reached the practical roof of the device."""
    NO_GAIN = "no_gain"
    """The latest correct attempts were not faster than the best before."""
    EDITED = "edited"
    """A person's edit was judged; no model is asked."""
    RETIRED = "retired"
    """A person retired it."""
    RECORDING_EXHAUSTED = "recording_exhausted"
    BUDGET = "budget"
    MODEL_FAILED = "model_failed"
    INFRA_ERROR = "infra_error"


class InstanceStarted(Event, frozen=True, kw_only=True, tag="instance_started"):
    """An instance (one chain on one task) began."""

    task: TaskName
    instance: int
    """1, 2, ... within the task."""


class InstanceFinished(DurableEvent, frozen=True, kw_only=True, tag="instance_finished"):
    """An instance ended."""

    task: TaskName
    instance: int
    reason: str
    """An `EndReason`, or a word of a newer version."""
    best: str | None = None
    """Its best attempt."""
    message: str = ""


class WaitingForPerson(Event, frozen=True, kw_only=True, tag="waiting_for_person"):
    """In manual review, an instance waits for a decision about its attempt."""

    attempt: AttemptKey

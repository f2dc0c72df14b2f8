"""The facts of one session that lists show, from its journal or its summary; reads no git.

Only the events that a summary needs are decoded.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from sessions.errors import JournalNotReadable
from sessions.events import (
    AttemptSwept,
    CallStarted,
    CandidateProposed,
    DeviceAwaited,
    DeviceSampled,
    Event,
    ReplyPiece,
    StageFinished,
    StageStarted,
    SweepRung,
    SweepStarted,
)
from sessions.home import Home, LiveFiles
from sessions.journal.codec import BadLine, decode, tag_of
from sessions.settings import RunSettings, SessionDescription

from .bests import MeasuredBest
from .description import SessionSummary, summarise
from .folding import apply
from .speed import Speed
from .state import Preparation, SessionState


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


class SessionInfo(RunSettings, frozen=True, kw_only=True):
    """One line of a list of sessions: its settings, with the current title, and its results."""

    name: str
    state: Standing
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
    attempts: int = 0
    """Judged attempts (`Tally.judged`)."""
    solved: tuple[str, ...] = ()
    """Tasks with a correct attempt."""
    confirmed: tuple[str, ...] | None = None
    """Tasks with a confirmed attempt; `None` if nothing was examined."""
    best: dict[str, str] = msgspec.field(default_factory=dict)
    """The best attempt of each task, correct or not, without rejected attempts."""
    speeds: dict[str, Speed] = msgspec.field(default_factory=dict)
    """Speed of that attempt by task, if measured."""
    bests: tuple[MeasuredBest, ...] | None = None
    """See `SessionSummary`."""
    accepted: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    """Attempts that wait for a person."""
    calls: int | None = None
    """Number of model calls with a reply; `None` in sessions of older versions, as `worked_s`."""
    worked_s: float | None = None
    """Seconds in which an engine worked."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    unpriced_calls: int = 0


UNKNOWN = RunSettings(
    method="", model="", tasks=(), instances=0, iterations=0, seed=0, devices=(), targets=(), review=""
)
"""Settings of a session that lost its description."""
RESULTS = frozenset(SessionSummary.__struct_fields__) & frozenset(SessionInfo.__struct_fields__)


def live_info(files: LiveFiles) -> SessionInfo | None:
    """Returns the facts of a session with live files; `None` if its folder has no journal.

    Nothing was recorded in such a folder, or it is being removed.
    """
    try:
        data = files.journal.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        return damaged_info(files.session, str(JournalNotReadable(files.journal, error)))
    state = SessionState()
    skim(state, data.split(b"\n")[:-1])
    return live_info_of(files, state)


def live_info_of(files: LiveFiles, state: SessionState) -> SessionInfo:
    """Returns the facts of a live session from `state`, into which its journal was skimmed."""
    summary, running = summarise(state), files.running
    info = info_of(files.session, state.started, summary, running=running)
    if running and files.reachable and (summary.finished or summary.stopped is not None):
        return msgspec.structs.replace(info, putting_away_since=summary.last_wall)
    if running:
        return msgspec.structs.replace(info, preparing=state.preparing)
    if info.state is Standing.FINISHED:
        return msgspec.structs.replace(info, state=Standing.UNSTORED)
    return info


def damaged_info(name: str, problem: str) -> SessionInfo:
    """Returns the line of a session whose journal, description or summary cannot be read."""
    return SessionInfo(name=name, state=Standing.DAMAGED, problem=problem, **UNKNOWN.settings())


def running_infos(home: Home) -> list[SessionInfo]:
    """Returns the sessions that an engine runs, newest first."""
    infos = [live_info(files) for files in home.live_sessions() if files.running]
    return [info for info in reversed(infos) if info is not None]


DETAILS = (
    CallStarted,
    ReplyPiece,
    CandidateProposed,
    SweepStarted,
    AttemptSwept,
    SweepRung,
    StageStarted,
    StageFinished,
    DeviceSampled,
    DeviceAwaited,
)
"""Events that a summary does not need: nearly all events of a long journal."""
_SKIPPED = tuple(b'{"type":"%s"' % tag_of(kind).encode() for kind in DETAILS)


def skim(state: SessionState, lines: Iterable[bytes]) -> None:
    """Fold only the events that a summary needs."""
    for line in lines:
        if line.startswith(_SKIPPED):
            continue
        event = decode(line)
        if isinstance(event, Event):
            apply(state, event)
        elif isinstance(event, BadLine):
            state.skipped_events += 1


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
    results = {name: getattr(summary, name) for name in RESULTS}
    settings = (UNKNOWN if description is None else description).settings()
    return SessionInfo(
        name=name,
        state=standing,
        started=None if description is None else description.started,
        last=summary.last_wall,
        **settings | results,
    )

"""The list of all sessions, from live folders and the store, and where the events of each are.

Lists read summaries; they do not fold whole journals.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from .codec import BadLine, decode, tag_of
from .description import SessionDescription, SessionSummary, describe, summarise
from .errors import AmbiguousSession, NoSuchSession, SessionBusy
from .events import (
    AttemptSwept,
    CallStarted,
    CandidateProposed,
    DeviceAwaited,
    DeviceSampled,
    Event,
    MethodOptions,
    ReplyPiece,
    StageFinished,
    StageStarted,
    SweepRung,
    SweepStarted,
)
from .files import FileLock
from .fold import apply
from .home import JOURNAL, Home, LiveFiles
from .journal import Journal, read_journal
from .recorder import LOCK_WAIT_S, put_away
from .state import SessionState
from .store import Store


class Standing(StrEnum):
    """The status of a session."""

    RUNNING = "running"
    """An engine holds its lock."""
    FINISHED = "finished"
    STOPPED = "stopped"
    """Its engine stopped in good order; it can be resumed."""
    CRASHED = "crashed"
    """Its engine ended without a final event; it can be resumed."""


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a list of sessions."""

    name: str
    state: Standing
    title: str = ""
    """Title by a person; empty if none."""
    method: str = ""
    model: str = ""
    tasks: tuple[str, ...] = ()
    started: float | None = None
    """Seconds since the epoch, UTC."""
    last: float | None = None
    """Time of its last event."""
    instances: int | None = None
    iterations: int | None = None
    series: str = ""
    """Name of the ablation that it belongs to; empty if none."""
    options: MethodOptions = MethodOptions()
    attempts: int = 0
    """Number of judged attempts."""
    solved: tuple[str, ...] = ()
    """Tasks with a correct attempt."""
    confirmed: tuple[str, ...] | None = None
    """Tasks with a confirmed attempt; `None` if nothing was examined."""
    best: dict[str, str] = {}
    """The best attempt of each task, correct or not, without rejected attempts."""
    speedups: dict[str, float] = {}
    """Speedup of that attempt by task, if measured."""
    accepted: tuple[str, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    unpriced_calls: int = 0


def list_sessions(home: Home) -> list[SessionInfo]:
    """Returns every session of the home, newest first; empty if the home does not exist."""
    # Live folders first: a session that moves to the store during this call is then found there.
    sessions = {}
    for files in home.live_sessions():
        info = _live_info(files)
        if info is not None:
            sessions[info.name] = info
    if home.store.exists():
        with Store.read_only(home.store) as store:
            suffix = f"/{JOURNAL}"
            for branch, commit in store.heads().items():
                name = branch.removesuffix(suffix)
                if branch.endswith(suffix) and name not in sessions:
                    description, summary = store.describe(name, commit=commit)
                    sessions[name] = _info(name, description, summary or SessionSummary(), running=False)
    return sorted(sessions.values(), key=lambda info: info.name, reverse=True)


def session_names(home: Home) -> list[str]:
    """Returns the names of all sessions of the home, oldest first."""
    names = {files.session for files in home.live_sessions() if files.journal.exists()}
    if home.store.exists():
        with Store.read_only(home.store) as store:
            names.update(store.sessions())
    return sorted(names)


def find_session(home: Home, prefix: str) -> str:
    """Returns the session with this name or unique prefix.

    Raises `NoSuchSession` with similar names, or `AmbiguousSession`.
    """
    names = session_names(home)
    if prefix in names:
        return prefix
    fitting = [name for name in names if prefix and name.startswith(prefix)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise AmbiguousSession(prefix, fitting=fitting[::-1])
    raise NoSuchSession(prefix, nearest=difflib.get_close_matches(prefix, names[::-1], n=3, cutoff=0.5))


def journal_of(home: Home, session: str) -> Journal:
    """Returns a session's journal from the live folder or the store; `NoSuchSession` if there is none."""
    try:
        return read_journal(home.live(session).journal)
    except FileNotFoundError:
        # A session is in the store before its live folder is removed.
        if not home.store.exists():
            raise NoSuchSession(session) from None
        with Store.read_only(home.store) as store:
            return store.session_journal(session)


def delete_session(home: Home, session: str) -> None:
    """Delete the branches and live files of a session; accepted kernels stay.

    Raises `SessionBusy` while it runs, and `NoSuchSession`. Git frees the disk space at its next `gc --prune=now`.
    """
    files = home.live(session)
    if session not in session_names(home) and not files.folder.is_dir():
        raise NoSuchSession(session)
    lock = FileLock(files.lock)
    try:
        if files.folder.is_dir() and not lock.acquire(wait_s=LOCK_WAIT_S):
            raise SessionBusy(session)
        if home.store.exists():
            with Store.of(home) as store:
                store.delete_session(session)
        if files.folder.is_dir():
            put_away(files)
    finally:
        lock.release()


def _live_info(files: LiveFiles) -> SessionInfo | None:
    """`None` for a folder without a journal: nothing was recorded in it, or it is being removed."""
    try:
        data = files.journal.read_bytes()
    except FileNotFoundError:
        return None
    state = _skim(data.split(b"\n")[:-1])
    description = describe(state.started) if state.started is not None else None
    return _info(files.session, description, summarise(state), running=files.running)


_SKIPPED = tuple(
    b'{"type":"%s"' % tag_of(kind).encode()
    for kind in (
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
)
"""Starts of the lines that a summary does not need: nearly all lines of a long journal."""


def _skim(lines: Iterable[bytes]) -> SessionState:
    """Fold only the events that a summary needs."""
    state = SessionState()
    for line in lines:
        if line.startswith(_SKIPPED):
            continue
        event = decode(line)
        if isinstance(event, Event):
            apply(state, event)
        elif isinstance(event, BadLine):
            state.skipped_events += 1
    return state


def _info(
    name: str, description: SessionDescription | None, summary: SessionSummary, *, running: bool
) -> SessionInfo:
    if running:
        standing = Standing.RUNNING
    elif summary.finished:
        standing = Standing.FINISHED
    else:
        standing = Standing.STOPPED if summary.stopped is not None else Standing.CRASHED
    info = SessionInfo(
        name=name,
        state=standing,
        title=summary.title,
        last=summary.last_wall,
        attempts=summary.attempts,
        solved=summary.solved,
        confirmed=summary.confirmed,
        best=summary.best,
        speedups=summary.speedups,
        accepted=summary.accepted,
        input_tokens=summary.input_tokens,
        output_tokens=summary.output_tokens,
        cost_usd=summary.cost_usd,
        unpriced_calls=summary.unpriced_calls,
    )
    if description is None:
        return info
    return msgspec.structs.replace(
        info,
        method=description.method,
        model=description.model,
        tasks=description.tasks,
        started=description.started,
        instances=description.instances,
        iterations=description.iterations,
        series=description.series,
        options=description.options,
    )

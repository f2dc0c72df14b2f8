"""Which sessions there are, and where their events lie: live folders and the store as one list, without folding any of it."""

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
from .home import Home, LiveFiles
from .journal import Journal, read_journal
from .recorder import LOCK_WAIT_S, put_away
from .state import SessionState
from .store import JOURNAL, Store


class Standing(StrEnum):
    """Where a session stands."""

    RUNNING = "running"
    """An engine holds its lock."""
    FINISHED = "finished"
    STOPPED = "stopped"
    """Its engine left in order; it can be resumed."""
    CRASHED = "crashed"
    """Its engine ended without a word; it can be resumed."""


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a list of sessions."""

    name: str
    state: Standing
    method: str = ""
    model: str = ""
    tasks: tuple[str, ...] = ()
    started: float | None = None
    """Seconds since the epoch, UTC."""
    last: float | None = None
    """Of its last event."""
    instances: int | None = None
    iterations: int | None = None
    series: str = ""
    """What it was started as a part of; empty for one that stands alone."""
    options: MethodOptions = MethodOptions()
    attempts: int = 0
    """Judged ones."""
    solved: tuple[str, ...] = ()
    """Tasks with a correct attempt."""
    confirmed: tuple[str, ...] | None = None
    """Tasks with a confirmed attempt; `None` where nothing was examined."""
    best: dict[str, str] = {}
    """By task, the best attempt, correct or not, that no person rejected."""
    speedups: dict[str, float] = {}
    """By task, that attempt's speedup, where one was measured."""
    accepted: tuple[str, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    unpriced_calls: int = 0


def list_sessions(home: Home) -> list[SessionInfo]:
    """Every session of the home, newest first; empty where there is no home yet."""
    # Live folders first: a session that is put away meanwhile is in the store by then.
    found = {}
    for files in home.live_sessions():
        info = _live_info(files)
        if info is not None:
            found[info.name] = info
    if home.store.exists():
        with Store.read_only(home.store) as store:
            suffix = f"/{JOURNAL}"
            for branch, commit in store.heads().items():
                name = branch.removesuffix(suffix)
                if branch.endswith(suffix) and name not in found:
                    description, summary = store.describe(name, commit=commit)
                    found[name] = _info(name, description, summary or SessionSummary(), running=False)
    return sorted(found.values(), key=lambda info: info.name, reverse=True)


def session_names(home: Home) -> list[str]:
    """Names of every session of the home, sorted: oldest first."""
    names = {files.session for files in home.live_sessions() if files.journal.exists()}
    if home.store.exists():
        with Store.read_only(home.store) as store:
            names.update(store.sessions())
    return sorted(names)


def find_session(home: Home, asked: str) -> str:
    """The session of this name or unique prefix; `NoSuchSession` with the nearest names, or `AmbiguousSession`."""
    names = session_names(home)
    if asked in names:
        return asked
    fitting = [name for name in names if asked and name.startswith(asked)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise AmbiguousSession(asked, fitting=fitting[::-1])
    raise NoSuchSession(asked, nearest=difflib.get_close_matches(asked, names[::-1], n=3, cutoff=0.5))


def journal_of(home: Home, session: str) -> Journal:
    """All that a session's journal holds, wherever it lies; `NoSuchSession` when there is none."""
    try:
        return read_journal(home.live(session).journal)
    except FileNotFoundError:
        # Put away, then; a session is in the store before its live files go.
        if not home.store.exists():
            raise NoSuchSession(session) from None
        with Store.read_only(home.store) as store:
            return store.session_journal(session)


def delete_session(home: Home, session: str) -> None:
    """Take a session away: its branches and live files; kernels that people accepted stay.

    `SessionBusy` while it runs, `NoSuchSession`. Its objects leave the disk with git's next `gc --prune=now`.
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
    """`None` for a folder without a journal: nothing was recorded in it, or it is being put away."""
    try:
        data = files.journal.read_bytes()
    except FileNotFoundError:
        return None
    state = _skim(data.split(b"\n")[:-1])
    description = describe(state.started) if state.started is not None else None
    return _info(files.session, description, summarise(state), running=files.running)


_PASSED_OVER = tuple(
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
"""How lines begin that a summary does not need: nearly all of a long journal."""


def _skim(lines: Iterable[bytes]) -> SessionState:
    """The state as far as a summary needs it."""
    state = SessionState()
    for line in lines:
        if line.startswith(_PASSED_OVER):
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
    shared = SessionInfo(
        name=name,
        state=standing,
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
        return shared
    return msgspec.structs.replace(
        shared,
        method=description.method,
        model=description.model,
        tasks=description.tasks,
        started=description.started,
        instances=description.instances,
        iterations=description.iterations,
        series=description.series,
        options=description.options,
    )

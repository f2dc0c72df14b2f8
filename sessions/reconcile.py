"""Taking a session up again after its engine ended, in whatever moment that was.

The journal is the truth; git is brought in step with it: judged attempts that were not committed are, refs that are behind move
on, decisions reach `accepted`. Locks that a killed git writer left are cleared, a torn last line is put aside.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack

from .errors import NoSuchSession, NothingToResume, SessionBusy
from .events import DecisionMade, DecisionUndone, Event, Notice
from .files import FileLock, write_whole
from .home import Home, LiveFiles
from .journal import Clock, Opened, open_journal
from .recorder import LOCK_WAIT_S, Recorder
from .segments import Segments
from .state import InstanceState
from .store import HEADS, Store, attempt_branch


def resume(home: Home, session: str, *, clock: Clock | None = None) -> Recorder:
    """The recorder of a session that an engine goes on with, holding its lock, with git in step.

    The engine records its `EngineStarted(resumed=True)` next. `NothingToResume` when the session is finished (what was left to
    put away then is), else as `take_up`.
    """
    recorder = take_up(home, session, clock=clock)
    if recorder.state.finished:
        with recorder:
            recorder.finish_now()
        raise NothingToResume(session)
    return recorder


def take_up(home: Home, session: str, *, clock: Clock | None = None) -> Recorder:
    """The recorder of a session that nobody records, finished or not; one that is in the store alone gets live files again.

    `NoSuchSession`, `SessionBusy` when an engine has it, `JournalDamaged` naming the line, `HomeNotWritable`, `StoreBroken`.
    """
    home.ensure()
    live = home.live(session)
    with ExitStack() as undo:
        store = Store.of(home)
        undo.callback(store.close)
        lock = FileLock(live.lock)
        undo.callback(lock.release)
        _hold(store, live, lock)
        segments = Segments(store, live)
        opened = _open(live, segments, clock or Clock())
        undo.callback(opened.writer.close)
        recorder = Recorder(
            home,
            live,
            lock=lock,
            writer=opened.writer,
            store=store,
            segments=segments,
            events=opened.journal.events,
        )
        if recorder.state.started is None:
            raise NoSuchSession(session)
        _bring_git_in_step(recorder, opened.journal.events)
        if opened.torn is not None:
            words = f"the journal's last line was cut short; it was put aside as {opened.torn.name}"
            recorder.record(Notice(level="warning", message=words))
        undo.pop_all()
    return recorder


def _hold(store: Store, live: LiveFiles, lock: FileLock) -> None:
    """Take the session's lock; a session that the store alone knows gets its live folder and journal back."""
    if not live.journal.exists():
        held = store.session_bytes(live.session)
        live.folder.mkdir(mode=0o700, exist_ok=True)
        _lock_or_busy(live, lock)
        if not live.journal.exists():
            write_whole(live.journal, held)
        return
    _lock_or_busy(live, lock)


def _lock_or_busy(live: LiveFiles, lock: FileLock) -> None:
    try:
        got = lock.acquire(wait_s=LOCK_WAIT_S)
    except FileNotFoundError as error:
        raise NoSuchSession(live.session) from error
    if not got:
        raise SessionBusy(live.session)


def _open(live: LiveFiles, segments: Segments, clock: Clock) -> Opened:
    """The journal, with what git holds beyond it put back first."""
    opened = open_journal(live.journal, clock=clock)
    written = live.journal.read_bytes()
    lost = segments.align(written)
    if not lost:
        return opened
    opened.writer.close()
    write_whole(live.journal, written + lost)
    return open_journal(live.journal, clock=clock)._replace(torn=opened.torn)


def _bring_git_in_step(recorder: Recorder, events: Iterable[Event]) -> None:
    repository = recorder.store.repository
    with repository.writing():
        repository.clear_stale_locks()
    for instance in recorder.state.instances.values():
        _forget_lost_commits(recorder.store, recorder.session, instance)
    for attempt in recorder.uncommitted():
        recorder.commit_attempt_now(attempt)
    decided = {event.attempt for event in events if isinstance(event, DecisionMade | DecisionUndone)}
    for attempt in sorted(decided):
        recorder.sync_accepted_now(attempt)


def _forget_lost_commits(store: Store, session: str, instance: InstanceState) -> None:
    """Mark attempts as not committed whose commit git lacks, and the last one where its branch points elsewhere.

    Committing them again gives the same ids and puts the branch right; one that is ahead, because the event that tells of it was
    lost, is put right by the attempts that wait to be committed.
    """
    committed = sorted(
        (attempt for attempt in instance.attempts if attempt.commit is not None),
        key=lambda attempt: attempt.committed_seq,
    )
    tip = store.repository.read_ref(HEADS + attempt_branch(session, instance.key))
    if committed and committed[-1].commit != tip:
        committed[-1].commit = None
    for attempt in committed:
        if attempt.commit is not None and not store.repository.has(attempt.commit):
            attempt.commit = None

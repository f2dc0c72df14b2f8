"""Opens a session again after its engine ended, at whatever moment that was.

The journal is the truth, and git is brought in line with it. Judged attempts are committed if they have no commit, or
if their commit lost a tree or a file. Old refs are moved, and this home's decisions reach `accepted`. Locks of a killed git
process are removed, and a torn last line is set aside.
"""

from __future__ import annotations

from contextlib import ExitStack

from sessions.errors import CommandRefused, NoSuchSession, NothingToResume, SessionBusy
from sessions.events import NOTHING_TO_STOP, Command, Notice, Stop
from sessions.files import FileLock, write_whole
from sessions.home import Home, LiveFiles
from sessions.journal.journal import EventClock, Opened, open_journal
from sessions.state.state import InstanceState

from .attempt_commits import committed
from .recorder import LOCK_WAIT_S, Recorder
from .repository import HEADS
from .segments import Segments
from .store import Store, attempt_branch


def resume(home: Home, session: str, *, clock: EventClock | None = None) -> Recorder:
    """Returns the recorder of a session that an engine continues; it holds the lock, and git is in line.

    The engine records its `EngineStarted(resumed=True)` next. Raises `NothingToResume` if the session is finished,
    after moving it to the store if needed; else errors as `take_up`.
    """
    recorder = take_up(home, session, clock=clock)
    if recorder.state.finished:
        with recorder:
            recorder.now(recorder.finish())
        raise NothingToResume(session)
    return recorder


def record_at_rest(
    home: Home, session: str, command: Command, *, clock: EventClock | None = None
) -> Command | None:
    """Record a command in a session that no engine runs, and return its event; a resumed engine follows it.

    Returns `None` if the session has the same work to do already. Raises `CommandRefused`, else errors as `take_up`.
    """
    if isinstance(command, Stop):
        raise CommandRefused(NOTHING_TO_STOP)
    with take_up(home, session, clock=clock) as recorder:
        try:
            return None if command.is_pending(recorder.state) else recorder.now(recorder.follow(command))
        finally:
            recorder.now(recorder.put_down())


def take_up(home: Home, session: str, *, clock: EventClock | None = None) -> Recorder:
    """Returns the recorder of a session that no process records, finished or not.

    A session that is only in the store gets live files again. Raises `NoSuchSession`, `SessionBusy` if an engine has
    the session, `JournalDamaged` with the line, `HomeNotWritable` or `StoreBroken`.
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
        opened = _open(live, segments, clock or EventClock())
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
        _align_git(recorder)
        if opened.torn is not None:
            words = f"the journal's last line was incomplete; it is kept in {opened.torn.name}"
            recorder.record(Notice(level="warning", message=words))
        undo.pop_all()
    return recorder


def _hold(store: Store, live: LiveFiles, lock: FileLock) -> None:
    """Take the session's lock; restore live folder and journal if only the store has the session."""
    stored = None if live.journal.exists() else store.session_bytes(live.session)
    if stored is not None:
        live.folder.mkdir(mode=0o700, exist_ok=True)
    try:
        got = lock.acquire(wait_s=LOCK_WAIT_S)
    except FileNotFoundError as error:
        raise NoSuchSession(live.session) from error
    if not got:
        raise SessionBusy(live.session)
    if stored is not None and not live.journal.exists():
        write_whole(live.journal, stored)


def _open(live: LiveFiles, segments: Segments, clock: EventClock) -> Opened:
    """Open the journal after restoring events that only git has."""
    opened = open_journal(live.journal, clock=clock)
    written = live.journal.read_bytes()
    lost = segments.align(written)
    if not lost:
        return opened
    opened.writer.close()
    write_whole(live.journal, written + lost)
    return open_journal(live.journal, clock=clock)._replace(torn=opened.torn)


def _align_git(recorder: Recorder) -> None:
    """Bring git in line with the journal. Without damage this starts one git process, whatever the session's size."""
    store = recorder.store
    with store.repository.writing():
        store.repository.clear_stale_locks()
    is_complete = recorder.is_complete()
    for instance in recorder.state.instances.values():
        _unmark_wrong_tip(store, recorder.session, instance)
    recorder.now(recorder.commit_all() if is_complete else recorder.write_lost())
    recorder.now(recorder.replay_decisions())


def _unmark_wrong_tip(store: Store, session: str, instance: InstanceState) -> None:
    """Mark the last attempt as uncommitted if its branch points elsewhere.

    Committing it again gives the same id and corrects the branch. A branch that is ahead, because its event was
    lost, is corrected when the uncommitted attempts are committed.
    """
    attempts = committed(instance)
    tip = store.repository.read_ref(HEADS + attempt_branch(session, instance.key))
    if attempts and attempts[-1].commit != tip:
        attempts[-1].commit = None

"""Opens a session again after its engine ended, at whatever moment that was.

The journal is the truth, and git is brought in line with it. Judged attempts are committed if they have no commit, or
if their commit lost a tree or a file. Old refs are moved, and this home's decisions reach `accepted`. Locks of a killed git
process are removed, and a torn last line is set aside.
"""

from __future__ import annotations

from contextlib import ExitStack

from sessions.errors import (
    CommandRefused,
    HomeNotWritable,
    NoSuchSession,
    NothingToResume,
    SessionBusy,
    StoreDamaged,
)
from sessions.events import NOTHING_TO_STOP, Command, Notice, Stop
from sessions.files import FileLock, write_whole
from sessions.home import Home, SessionFiles
from sessions.journal.file import expand_journal
from sessions.journal.journal import EventClock, open_journal

from .attempt_commits import committed
from .recorder import LOCK_WAIT_S, Recorder
from .repository import HEADS
from .restoring import Agreement, compare, restore
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

    A compressed journal is expanded, and one that only git has is written. Raises `NoSuchSession`, `SessionBusy` if an engine
    has the session, `JournalDamaged` with the line, `HomeNotWritable` or `StoreBroken`.
    """
    home.ensure()
    try:
        return _taken_up(home, home.files(session), clock)
    except FileNotFoundError:
        raise NoSuchSession(session) from None  # another process deleted it
    except OSError as error:
        raise HomeNotWritable(home.root, why=error.strerror or str(error)) from error


def _taken_up(home: Home, files: SessionFiles, clock: EventClock | None) -> Recorder:
    with ExitStack() as undo:
        store = Store.of(home)
        undo.callback(store.close)
        if not files.has_journal:
            restore(store, files)
        lock = FileLock(files.lock)
        undo.callback(lock.release)
        if not lock.acquire(wait_s=LOCK_WAIT_S):
            raise SessionBusy(files.session)
        expand_journal(files.journal)
        opened = open_journal(files.journal, clock=clock)
        agreement = _compare(store, files)
        if agreement is not None and agreement.beyond:
            opened.writer.close()
            write_whole(files.journal, files.journal.read_bytes() + agreement.beyond)
            opened = open_journal(files.journal, clock=clock)._replace(torn=opened.torn)
        undo.callback(opened.writer.close)
        recorder = Recorder(
            home,
            files,
            lock=lock,
            writer=opened.writer,
            store=store,
            stored=agreement.stored + len(agreement.beyond) if agreement is not None else 0,
        )
        if recorder.state.started is None:
            raise NoSuchSession(files.session)
        _align_git(recorder, is_damaged=agreement is None)
        if opened.torn is not None:
            words = f"the journal's last line was incomplete; it is kept in {opened.torn.name}"
            recorder.record(Notice(level="warning", message=words))
        undo.pop_all()
    return recorder


def _compare(store: Store, files: SessionFiles) -> Agreement | None:
    """Compare the journal with git; `None` if git's copy is damaged or has other events."""
    try:
        return compare(store, files.session, files.journal.read_bytes())
    except NoSuchSession:
        return Agreement(0, b"")
    except StoreDamaged:
        return None


def _align_git(recorder: Recorder, *, is_damaged: bool) -> None:
    """Bring git in line with the journal. Without damage this starts one git process, whatever the session's size."""
    store = recorder.store
    with store.repository.writing():
        store.repository.clear_stale_locks()
    recorder.now(recorder.mend(is_damaged=is_damaged))
    with store.repository.writing():
        for instance in recorder.state.instances.values():
            branch = HEADS + attempt_branch(recorder.session, instance.key)
            attempts = committed(instance)
            # A branch that is ahead lost its event; it is corrected when the attempts without a commit are committed.
            if attempts and store.repository.read_ref(branch) != attempts[-1].commit:
                store.repository.write_ref(branch, attempts[-1].commit or "")
    recorder.now(recorder.commit_all())
    recorder.now(recorder.replay_decisions())

"""The list of all sessions, from their folders and, for those without a journal, from the store; and the events of each.

Lists read summaries; they do not fold whole journals.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import NamedTuple

from . import recorded_example as example
from .errors import (
    AmbiguousSession,
    CommandRefused,
    ForeignSession,
    HomeNotWritable,
    JournalNotReadable,
    NoSuchSession,
    NoSuchSessionOrStudy,
    SessionBusy,
    StoreBroken,
)
from .files import FileLock
from .home import Home, SessionFiles, file_mark
from .journal.journal import Journal, parse
from .journal.reader import JournalReader
from .listing.description import summarise
from .listing.info import ListedSession, damaged_info, info_of
from .listing.info import SessionInfo as SessionInfo
from .listing.info import Standing as Standing
from .listing.skimming import SUMMARY, Skim, skim_lines
from .names import choose_session, split_series
from .state.folding import fold
from .state.state import SessionState
from .store.origin import settings_acts
from .store.recorder import LOCK_WAIT_S
from .store.restoring import session_journal
from .store.store import Store

LATEST = "latest"
"""Names the session that was started last."""


class StudySessions(NamedTuple):
    """A study and its sessions, in the order of its cells."""

    study: str
    sessions: tuple[SessionInfo, ...]


class SessionList:
    """All sessions of a home; each reading reads only what is new. Any thread may read; readings wait for each other."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._listed: dict[str, ListedSession] = {}
        self._stored: dict[str, SessionInfo] = {}
        """Lines of sessions of the store, by commit of the journal's branch: they stay there if the home cannot be written."""
        self._reading = threading.Lock()

    def mark(self) -> tuple[object, ...]:
        """Returns a value that changes when a session starts, writes or ends, or a branch is added; reads no file."""
        folders = [
            (files.session, *files.journal_mark, files.running) for files in self._home.session_folders()
        ]
        store = self._home.store
        return (*folders, file_mark(store / "refs" / "heads"), file_mark(store / "packed-refs"))

    def read(self) -> list[SessionInfo]:
        """Returns every session, newest first; empty if the home does not exist."""
        with self._reading:
            listed = {
                files.session: self._listed.get(files.session) or ListedSession(files)
                for files in self._home.session_folders()
            }
            infos = {name: info for name, session in listed.items() if (info := session.info()) is not None}
            self._listed = {name: listed[name] for name in infos}
            infos |= self._read_store(infos)
            return sorted(infos.values(), key=lambda info: info.name, reverse=True)

    def _read_store(self, here: Collection[str]) -> dict[str, SessionInfo]:
        """Return the lines of the sessions that only the store has."""
        if not self._home.store.exists():
            return {}
        with Store.read_only(self._home.store) as store:
            journals = {name: commit for name, commit in store.journals().items() if name not in here}
        infos = {
            name: info
            for name, commit in journals.items()
            if (info := self._stored.get(commit or "") or stored_info(self._home, name)) is not None
        }
        # A repair writes lost objects again and changes no commit.
        self._stored = {
            commit: infos[name]
            for name, commit in journals.items()
            if commit and name in infos and infos[name].state is not Standing.DAMAGED
        }
        return infos


def list_sessions(home: Home) -> list[SessionInfo]:
    """Returns every session of the home, newest first; empty if the home does not exist."""
    return SessionList(home).read()


def stored_info(home: Home, session: str) -> SessionInfo | None:
    """Returns the line of a session that only the store has, or of the example; `None` if there is none.

    A session of the store gets its journal. It is *damaged* if git lost a part, or if the branch has no commit.
    """
    try:
        state = skimmed_state(home, session, SUMMARY)
    except NoSuchSession:
        return None
    except (StoreBroken, SessionBusy, JournalNotReadable) as error:
        return damaged_info(session, str(error))
    return info_of(session, state.started, summarise(state), running=False)


def session_names(home: Home) -> list[str]:
    """Returns the names of all sessions of the home, oldest first."""
    names = {files.session for files in home.session_folders() if _has_journal(files)}
    if home.store.exists():
        with Store.read_only(home.store) as store:
            names.update(store.journals())
    return sorted(names)


def _has_journal(files: SessionFiles) -> bool:
    try:
        return files.has_journal
    except PermissionError:
        return True


def find_session(home: Home, wanted: str) -> str:
    """Returns the session with this name, unique prefix or unique title, in this order; `latest` is the newest start.

    `example` is the session that comes with Wavedeck.

    Raises `NoSuchSession` with similar names, or `AmbiguousSession`.
    """
    names = session_names(home)
    if wanted in (example.WORD, example.NAME) and wanted not in names:
        return example.NAME
    if not names:
        raise NoSuchSession(wanted, home_is_empty=True)
    try:
        return choose_session(wanted, names)
    except (NoSuchSession, AmbiguousSession) as error:
        titled = [info.name for info in list_sessions(home) if wanted and info.title == wanted]
        if len(titled) == 1:
            return titled[0]
        if wanted == LATEST and not titled:
            # A name begins with the time of its start.
            return names[-1]
        if titled and isinstance(error, NoSuchSession):
            raise AmbiguousSession(wanted, fitting=titled) from None
        raise


def study_sessions(home: Home) -> dict[str, dict[int, SessionInfo]]:
    """Returns the newest session of each cell of each study, by study and cell; cells are in order."""
    studies: dict[str, dict[int, SessionInfo]] = {}
    # Oldest first: a newer session of a cell replaces the older one.
    for info in reversed(list_sessions(home)):
        if info.settings.series:
            study, cell = split_series(info.settings.series)
            studies.setdefault(study, {})[cell] = info
    return {study: dict(sorted(cells.items())) for study, cells in studies.items()}


def find_study(home: Home, wanted: str) -> StudySessions:
    """Returns the study with this name or unique prefix. Raises `NoSuchSession` or `AmbiguousSession`."""
    studies = study_sessions(home)
    name = choose_session(wanted, list(studies))
    return StudySessions(name, tuple(studies[name].values()))


def find_sessions(home: Home, wanted: str) -> list[str]:
    """Returns the session that `find_session` returns, or the sessions of the study with this name or unique prefix.

    The sessions of a study are in the order of its cells. Raises as `find_session`; in a home with studies the error names
    the command that lists studies.
    """
    try:
        return [find_session(home, wanted)]
    except NoSuchSession as error:
        try:
            return [info.name for info in find_study(home, wanted).sessions]
        except NoSuchSession:
            raise (NoSuchSessionOrStudy(wanted, error) if study_sessions(home) else error) from None


def open_reader(home: Home, session: str) -> JournalReader:
    """Returns the lines of a session's journal, which stay on the disk; raises as `journal_of`."""
    return JournalReader(session_journal(home, session))


def journal_of(home: Home, session: str) -> Journal:
    """Returns a session's journal as read; `NoSuchSession` if there is none."""
    with session_journal(home, session) as file:
        return parse(file.lines())


def session_state(home: Home, session: str) -> SessionState:
    """Returns a session's state, which reads large values from the journal when they are used; raises as `journal_of`."""
    return fold(open_reader(home, session))


def skimmed_state(home: Home, session: str, skim: Skim) -> SessionState:
    """Returns a session's state after the events that `skim` needs; raises as `journal_of`."""
    state = SessionState()
    skim_lines(state, open_reader(home, session), skim)
    return state


def session_info(home: Home, session: str) -> SessionInfo | None:
    """Returns the line of one session (its full name); `None` if there is none."""
    return ListedSession(home.files(session)).info() or stored_info(home, session)


def require_trust(home: Home, session: str) -> None:
    """Raise `ForeignSession` if an engine of this session would follow settings of another home."""
    home.ensure()
    with Store.of(home) as store:
        if store.is_own(session):
            return
    started = session_state(home, session).started
    raise ForeignSession(session, settings_acts(started) if started is not None else ())


def trust_session(home: Home, session: str) -> None:
    """Let an engine go on with a session of another home, until the session is fetched with further events."""
    with Store.of(home) as store:
        store.trust(session)


def delete_session(home: Home, session: str) -> None:
    """Delete the branches and the folder of a session; accepted kernels stay.

    Raises `SessionBusy`, `CommandRefused` or `NoSuchSession`. Git frees the disk space at its next `gc --prune=now`.
    """
    files = home.files(session)
    if session not in session_names(home) and not files.folder.is_dir():
        raise CommandRefused(example.READ_ONLY) if session == example.NAME else NoSuchSession(session)
    lock = FileLock(files.lock)
    try:
        # A session that is only in the store has no lock yet, and another process may open it during the deletion.
        files.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not lock.acquire(wait_s=LOCK_WAIT_S):
            raise SessionBusy(session)
        home.rows(session).unlink(missing_ok=True)
        # The journal last: while it is there the session is listed, and a deletion that was killed can be repeated.
        if home.store.exists():
            with Store.of(home) as store:
                store.delete_session(session)
        files.delete()
    except FileNotFoundError:
        raise NoSuchSession(session) from None  # another process deleted it
    except OSError as error:
        raise HomeNotWritable(home.root, why=error.strerror or str(error)) from error
    finally:
        lock.release()

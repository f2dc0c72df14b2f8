"""The list of all sessions, from live folders and the store, and where the events of each are.

Lists read summaries; they do not fold whole journals.
"""

from __future__ import annotations

import difflib

from .errors import AmbiguousSession, JournalNotReadable, NoSuchSession, SessionBusy, StoreBroken
from .files import FileLock
from .home import JOURNAL, Home, LiveFiles
from .journal.journal import Journal, read_journal
from .names import fitting_names
from .state.description import SessionSummary
from .state.info import SessionInfo, Standing, damaged_info, info_of, live_info
from .store.recorder import LOCK_WAIT_S, put_away
from .store.store import Store, damaged_branch, journal_branch

LATEST = "latest"
"""Names the session that was started last."""

__all__ = [
    "LATEST",
    "SessionInfo",
    "Standing",
    "delete_session",
    "find_session",
    "journal_of",
    "list_sessions",
    "session_names",
]


def list_sessions(home: Home) -> list[SessionInfo]:
    """Returns every session of the home, newest first; empty if the home does not exist."""
    # Live folders first: a session that moves to the store during this call is then found there.
    sessions = {}
    for files in home.live_sessions():
        info = live_info(files)
        if info is not None:
            sessions[info.name] = info
    if home.store.exists():
        with Store.read_only(home.store) as store:
            suffix = f"/{JOURNAL}"
            for branch, commit in store.heads().items():
                name = branch.removesuffix(suffix)
                if branch.endswith(suffix) and name not in sessions:
                    sessions[name] = stored_info(store, name, commit)
            for name in store.damaged_sessions() - sessions.keys():
                sessions[name] = damaged_info(name, str(damaged_branch(journal_branch(name))))
    return sorted(sessions.values(), key=lambda info: info.name, reverse=True)


def stored_info(store: Store, session: str, commit: str) -> SessionInfo:
    """Returns the line of a session in the store, whose journal's branch is at `commit`; *damaged* if git lost a part."""
    try:
        description, summary = store.describe(session, commit=commit)
    except StoreBroken as error:
        return damaged_info(session, str(error))
    return info_of(session, description, summary or SessionSummary(), running=False)


def session_names(home: Home) -> list[str]:
    """Returns the names of all sessions of the home, oldest first."""
    names = {files.session for files in home.live_sessions() if _has_journal(files)}
    if home.store.exists():
        with Store.read_only(home.store) as store:
            names.update(store.sessions())
    return sorted(names)


def _has_journal(files: LiveFiles) -> bool:
    try:
        return files.journal.exists()
    except PermissionError:
        return True


def find_session(home: Home, wanted: str) -> str:
    """Returns the session with this name, unique prefix or unique title, in this order; `latest` is the newest start.

    Raises `NoSuchSession` with similar names, or `AmbiguousSession`.
    """
    names = session_names(home)
    fitting = fitting_names(wanted, names)
    if len(fitting) == 1:
        return fitting[0]
    titled = [info.name for info in list_sessions(home) if wanted and info.title == wanted]
    if len(titled) == 1:
        return titled[0]
    if wanted == LATEST and not titled and names:
        # A name begins with the time of its start.
        return names[-1]
    if fitting or titled:
        raise AmbiguousSession(wanted, fitting=fitting[::-1] or titled)
    nearest = difflib.get_close_matches(wanted, names[::-1], n=3, cutoff=0.5)
    raise NoSuchSession(wanted, nearest=nearest, home_is_empty=not names)


def journal_of(home: Home, session: str, *, most_bytes: int | None = None) -> Journal:
    """Returns a session's journal from the live folder or the store; `NoSuchSession` if there is none.

    With `most_bytes`, about so much of its beginning.
    """
    try:
        return read_journal(home.live(session).journal, most_bytes=most_bytes)
    except FileNotFoundError:
        # A session is in the store before its live folder is removed.
        if not home.store.exists():
            raise NoSuchSession(session) from None
        with Store.read_only(home.store) as store:
            return store.session_journal(session, most_bytes=most_bytes)
    except OSError as error:
        raise JournalNotReadable(home.live(session).journal, error) from error


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

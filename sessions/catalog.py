"""The list of all sessions, from live folders and the store, and where the events of each are.

Lists read summaries; they do not fold whole journals.
"""

from __future__ import annotations

import difflib

from .description import SessionSummary
from .errors import AmbiguousSession, NoSuchSession, SessionBusy
from .files import FileLock
from .home import JOURNAL, Home
from .info import SessionInfo, Standing, info_of, live_info
from .journal import Journal, read_journal
from .recorder import LOCK_WAIT_S, put_away
from .store import Store

__all__ = [
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
                    description, summary = store.describe(name, commit=commit)
                    sessions[name] = info_of(name, description, summary or SessionSummary(), running=False)
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

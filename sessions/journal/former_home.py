"""Takes over the home of an earlier version, which had its unfinished sessions in `live/` and the finished ones in git alone.

A finished session gets its journal when it is first opened (`sessions.store.restoring`); git keeps all of it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from sessions.errors import HomeNotWritable
from sessions.files import FileLock
from sessions.home import Home

LOCK_WAIT_S = 0.05
"""A reader that checks the lock holds it for microseconds."""


def take_over(home: Home) -> list[str]:
    """Move each session of an earlier version to its place; a second call goes on where a first one was killed.

    Returns the sessions that stay, and that a later call moves: an engine of that version runs them, or `sessions/` has a journal
    of the same name. Raises `HomeNotWritable`.
    """
    try:
        if not home.former.is_dir():
            return []
    except PermissionError:
        return []  # a command that reads the home says it
    try:
        home.sessions.mkdir(mode=0o700, exist_ok=True)
        staying = [folder.name for folder in sorted(home.former.iterdir()) if not _take_over(home, folder)]
        if not staying:
            home.former.rmdir()
            home.ensure()
    except FileNotFoundError:
        return []  # another process takes the home over
    except OSError as error:
        raise HomeNotWritable(home.root, why=error.strerror or str(error)) from error
    return staying


def _take_over(home: Home, folder: Path) -> bool:
    """Move a session to its place; returns False if it stays."""
    if not folder.is_dir() or folder.name.startswith("."):
        # Left by a removal that was interrupted, or no session.
        shutil.rmtree(folder) if folder.is_dir() else folder.rename(home.sessions / folder.name)
        return True
    lock = FileLock(folder / "lock")
    here = home.files(folder.name)
    try:
        if not lock.acquire(wait_s=LOCK_WAIT_S) or here.has_journal:
            return False
        if here.folder.exists():
            here.delete()  # without a journal: what a restore or a deletion left that was killed
        folder.rename(here.folder)
    finally:
        lock.release()
    return True

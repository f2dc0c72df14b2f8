"""Who besides this user can write into a home, or read it. Nothing here changes a mode."""

from __future__ import annotations

import os
import pwd
import shlex
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .errors import HomeNotPrivate
from .home import Home

WRITE = stat.S_IWGRP | stat.S_IWOTH
ENTER = stat.S_IXGRP | stat.S_IXOTH
OPEN = stat.S_IRGRP | stat.S_IROTH | ENTER


def require_private(home: Home) -> None:
    """Raises `HomeNotPrivate` if a user besides this one and root can write into the home or into one of its folders."""
    for folder, status in _reachable_folders(home.root):
        if status.st_uid not in (os.geteuid(), 0):
            raise HomeNotPrivate(
                f"the folder {folder} of the home belongs to {_user_name(status.st_uid)}, who could change what runs as you; "
                "set WAVEDECK_HOME to a folder of your own"
            )
        if status.st_mode & WRITE:
            raise HomeNotPrivate(
                f"other users can write into {folder} (mode {_mode(status)}), so their files could run as you; "
                f"{_mending(home.root)}"
            )


def readers_warning(home: Home) -> str:
    """Returns one line with the command that helps, if other users can read the home; else an empty text."""
    with suppress(OSError):
        status = home.root.stat()
        if status.st_mode & OPEN:
            return f"other users can read the home {home.root} (mode {_mode(status)}); {_mending(home.root)}"
    return ""


def _reachable_folders(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the home's folder and, if others can enter it, the folders in it. A folder that cannot be read is not yielded."""
    try:
        status = root.stat()
        folders = sorted(root.iterdir()) if status.st_mode & ENTER else []
    except OSError:
        return
    yield root, status
    for folder in folders:
        with suppress(OSError):
            inner = folder.stat()
            if stat.S_ISDIR(inner.st_mode):
                yield folder, inner


def _mending(root: Path) -> str:
    return f"run: chmod go-rwx {shlex.quote(str(root))}"


def _mode(status: os.stat_result) -> str:
    return f"{stat.S_IMODE(status.st_mode):04o}"


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"

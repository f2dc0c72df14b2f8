"""Removes folders that foreign code wrote to: however deep it nested them, and whatever it shut."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

_TRIES = 5
"""A thread, which nobody can cancel, may still put a file into a folder that is being removed: then it is begun again."""
_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC


def remove(folder: Path) -> None:
    """Removes a folder and all in it, links and what they point to apart. What cannot be removed stays, without an error.

    `shutil.rmtree` calls itself for each folder in a folder (up to Python 3.12), and a thousand of them are one `RecursionError`.
    """
    for _ in range(_TRIES):
        with suppress(OSError):
            top = _opened(str(folder), None)
            try:
                _empty(top)
            finally:
                os.close(top)
            folder.rmdir()
        if not folder.exists():
            return


def _empty(top: int) -> None:
    """Takes folders out of those that they are in before these go, so that none is ever entered deeper than one below `top`."""
    unused, number = secrets.token_hex(8), 0
    while entries := _in(top):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=top)
                continue
            inner = _opened(entry.name, top)
            try:
                for child in _in(inner):
                    if child.is_dir(follow_symlinks=False):
                        os.close(_opened(child.name, inner))  # one that is shut to its owner cannot be moved
                        number += 1
                        os.rename(child.name, f"{unused}{number}", src_dir_fd=inner, dst_dir_fd=top)
                    else:
                        os.unlink(child.name, dir_fd=inner)
            finally:
                os.close(inner)
            os.rmdir(entry.name, dir_fd=top)


def _in(folder: int) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return list(found)


def _opened(name: str, beside: int | None) -> int:
    """A folder that is no link, opened to its owner first."""
    place = os.open(name, os.O_PATH | os.O_NOFOLLOW | _FOLDER, dir_fd=beside)
    try:
        there = Path(f"/proc/self/fd/{place}")
        there.chmod(stat.S_IRWXU)
        return os.open(there, os.O_RDONLY | _FOLDER)
    finally:
        os.close(place)

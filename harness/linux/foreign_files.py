"""Reads files and removes folders that foreign code can write to, at any depth and with any permissions."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

_TRIES = 5
"""Attempts. A thread that cannot be cancelled may still write into the folder during its removal."""
_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC


def remove(folder: Path) -> None:
    """Remove a folder and its content without following links. Entries that cannot be removed stay, without an error.

    `shutil.rmtree` calls itself for each nested folder (up to Python 3.12): a thousand nested folders are a `RecursionError`.
    """
    for _ in range(_TRIES):
        with suppress(OSError):
            top = _open_folder(str(folder), None)
            try:
                _empty(top)
            finally:
                os.close(top)
            folder.rmdir()
        if not folder.exists():
            return


def _empty(top: int) -> None:
    """Move nested folders up into `top` before their parent is removed, so that no folder deeper than one level is opened."""
    unused, number = secrets.token_hex(8), 0
    while entries := _list(top):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=top)
                continue
            inner = _open_folder(entry.name, top)
            try:
                for child in _list(inner):
                    if child.is_dir(follow_symlinks=False):
                        os.close(_open_folder(child.name, inner))  # without permissions it could not be moved
                        number += 1
                        os.rename(child.name, f"{unused}{number}", src_dir_fd=inner, dst_dir_fd=top)
                    else:
                        os.unlink(child.name, dir_fd=inner)
            finally:
                os.close(inner)
            os.rmdir(entry.name, dir_fd=top)


def _list(folder: int) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as listing:
        return list(listing)


def _open_folder(name: str, parent: int | None) -> int:
    """Return a descriptor of a folder, after giving its owner all permissions. `name` is a path below the folder `parent`.

    Raises `OSError` for a link: a guest may have made one that leads out of its folder.
    """
    place = os.open(name, os.O_PATH | os.O_NOFOLLOW | _FOLDER, dir_fd=parent)
    try:
        path = Path(f"/proc/self/fd/{place}")
        path.chmod(stat.S_IRWXU)
        return os.open(path, os.O_RDONLY | _FOLDER)
    finally:
        os.close(place)


def read_regular(file: Path | str, most_bytes: int, *, folder: int | None = None) -> bytes | None:
    """Return the content of a file in `folder` (descriptor); `None` if it is no regular file or larger than `most_bytes`."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as opened:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_size > most_bytes:
            return None
        return opened.read(most_bytes)

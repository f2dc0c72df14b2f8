"""The files without which git does not recognize a folder as a repository: `HEAD`, `refs` and `objects`."""

from __future__ import annotations

import re
from pathlib import Path

from sessions.errors import StoreBroken, StoreDamaged
from sessions.files import write_whole

HEAD = "refs/heads/accepted"
"""The branch that `HEAD` names in every store."""
_HEAD_CONTENT = re.compile(rb"(ref: refs/\S+|[0-9a-f]{40})\s*")


def check_skeleton(path: Path) -> None:
    """Raise `StoreDamaged` if the bare repository at `path` lacks `HEAD` or `refs`.

    Raises `StoreBroken` if the folder cannot be read. A folder without objects is not a damaged repository.
    """
    try:
        names = {entry.name for entry in path.iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StoreBroken(f"the store {path} cannot be read ({error.strerror}); check its owner") from error
    if "objects" not in names or ".git" in names:
        return
    if "refs" not in names:
        raise StoreDamaged(f"the store's folder {path / 'refs'} is lost")
    head = path / "HEAD"
    try:
        content = head.read_bytes()
    except OSError as error:
        raise StoreDamaged(f"the store's file {head} cannot be read ({error.strerror})") from error
    if not _HEAD_CONTENT.fullmatch(content):
        raise StoreDamaged(f"the store's file {head} is {'damaged' if content.strip() else 'empty'}")


def mend_skeleton(path: Path) -> None:
    """Write `HEAD` as in a new store, and make `refs`; branches and objects stay as they are."""
    (path / "refs").mkdir(mode=0o700, exist_ok=True)
    write_whole(path / "HEAD", f"ref: {HEAD}\n".encode())

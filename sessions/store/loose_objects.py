"""Writes git objects as loose files, in the format of git."""

from __future__ import annotations

import hashlib
import os
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from sessions.errors import StoreBroken
from sessions.files import write_all

RENAME_TRIES = 100
SYNCS = 8
MOST_OPEN = 128
"""Objects that are written together; each keeps a file open until it is synced."""


class LooseObjects:
    """Writes git objects as loose files, many at a time.

    Objects wait until `flush`, which writes and syncs them in parallel (a disk completes ten syncs about as fast as
    two) and then renames them to their names. So an object with a name always has its content, even after a power
    cut. As in git, the file system may lose names in a power cut; they are rebuilt from the journal.

    No ref reaches the objects until the caller writes one. `git gc` keeps young objects, so an object that exists
    becomes young again, as in git. `git gc --prune=now` deletes even those: then the recorder writes them again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: dict[Path, bytes] = {}

    def add(self, kind: bytes, data: bytes) -> str:
        """Add an object and return its id."""
        content = b"%s %d\0" % (kind, len(data)) + data
        sha = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        path = self._folder / sha[:2] / sha[2:]
        if path not in self._waiting and not self._is_kept(path):
            self._waiting[path] = zlib.compress(content, 1)
        return sha

    def _is_kept(self, path: Path) -> bool:
        """True if the object has a file; the file becomes young."""
        try:
            os.utime(path)
        except FileNotFoundError:
            return False
        except PermissionError:
            # Another user wrote the object.
            return True
        return True

    def flush(self) -> None:
        """Write all waiting objects to the disk; `OSError` if the disk refuses, and then no object waits."""
        waiting, self._waiting = list(self._waiting.items()), {}
        for start in range(0, len(waiting), MOST_OPEN):
            self._write(dict(waiting[start : start + MOST_OPEN]))

    def _write(self, waiting: dict[Path, bytes]) -> None:
        written: dict[Path, Path] = {}
        descriptors: list[int] = []
        try:
            for place, (path, data) in enumerate(waiting.items()):
                temporary = self._folder / f"tmp_obj_{os.getpid()}_{threading.get_ident()}_{place}"
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
                descriptors.append(os.open(temporary, flags, 0o444))
                written[path] = temporary
                write_all(descriptors[-1], data)
            with ThreadPoolExecutor(max_workers=SYNCS) as pool:
                for _ in pool.map(os.fsync, descriptors):
                    pass
            for path, temporary in written.items():
                self._rename(temporary, path, waiting[path])
        except BaseException:
            for temporary in written.values():
                temporary.unlink(missing_ok=True)
            raise
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _rename(self, temporary: Path, path: Path, data: bytes) -> None:
        """Rename, repeatedly if needed: other git processes may remove empty folders, and temporary files."""
        for _ in range(RENAME_TRIES):
            with suppress(FileNotFoundError):
                temporary.rename(path)
                return
            path.parent.mkdir(exist_ok=True)
            if not temporary.exists():
                temporary.write_bytes(data)
        raise StoreBroken(
            f"{temporary} disappeared while it was written; does another program clean {self._folder}?"
        )

"""Files that appear whole, and locks that die with their holder."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make names that were added to or taken from a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Put `data` at `path`, durable when this returns: a reader sees the old file or the new one, never a part.

    A crash can leave a `.<name>.*` file beside it, which nothing reads.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, however many calls the system makes of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class FileLock:
    """An exclusive `flock`; it goes when the process does, however that ends.

    A child that is forked without exec shares it, and would keep it beyond its parent: fork servers must be started by exec.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds it."""
        return self._descriptor is not None

    def acquire(self, *, wait_s: float = 0.0) -> bool:
        """Take the lock, trying for `wait_s`; whether it was got.

        A file that was removed or replaced meanwhile (a session that was put away) does not count: the lock is on the file
        that stands at the path.
        """
        limit = time.monotonic() + wait_s
        while not self._try():
            if time.monotonic() >= limit:
                return False
            time.sleep(0.005)
        return True

    def _try(self) -> bool:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), self.path.stat()):
                self._descriptor, descriptor = descriptor, -1
                return True
        except (BlockingIOError, FileNotFoundError):
            return False
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        return False

    def release(self) -> None:
        """Let go; nothing happens where nothing is held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def locked(path: Path, *, wait_s: float) -> Iterator[bool]:
    """Hold the lock at `path` for a block; the value says whether it was got within `wait_s`."""
    lock = FileLock(path)
    try:
        yield lock.acquire(wait_s=wait_s)
    finally:
        lock.release()


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock at `path`.

    Asking takes a shared lock for microseconds, so whoever acquires one tries for longer than that.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    with suppress(OSError):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False

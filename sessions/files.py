"""Atomic file writes, and file locks that end with their process."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make added and removed names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make the content of a file durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write `data` to `path`; durable when this returns.

    A reader sees the old file or the new file, never a part. A crash can leave a `.<name>.*` file, which nothing
    reads.
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


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a file and return its descriptor. Raises `OSError` for a folder, and for a pipe, at which a reader would wait."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return descriptor


def read_regular(path: Path) -> bytes:
    """Returns a file's content; raises as `open_regular`."""
    with os.fdopen(open_regular(path), "rb") as file:
        return file.read()


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, with as many system calls as needed."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class FileLock:
    """An exclusive `flock`; the system releases it when the process ends, in whatever way.

    A child that is forked without exec shares the lock and would keep it after its parent. So fork servers must be
    started by exec.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """True if this object holds the lock."""
        return self._descriptor is not None

    def acquire(self, *, wait_s: float = 0.0) -> bool:
        """Try for `wait_s` to take the lock; returns True if it was taken.

        If the file was removed or replaced in the meantime (a session moved to the store), the lock on the old file
        does not count.
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
        """Release the lock, if this object holds it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def locked(path: Path, *, wait_s: float) -> Iterator[bool]:
    """Hold the lock at `path` for a block; the value is True if it was taken within `wait_s`."""
    lock = FileLock(path)
    try:
        yield lock.acquire(wait_s=wait_s)
    finally:
        lock.release()


def is_locked(path: Path) -> bool:
    """True if a process holds the lock at `path`.

    The check takes a shared lock for microseconds, so `acquire` must wait longer than that.
    """
    try:
        descriptor = open_regular(path)
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

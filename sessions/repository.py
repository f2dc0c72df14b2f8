"""A bare git repository written durably and without a process an object; laid out by `sessions.store`.

GitPython reads (through one long-lived `git cat-file --batch`) and runs the few git commands there are; objects and refs are
written here, since GitPython starts a `git hash-object` an object and syncs nothing. What is written is what git itself would
write: plain git reads, clones, checks and packs it.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

# Without git on the path GitPython would raise a screenful while it is imported; quiet, it says so at the first command.
os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")

import git
from git.exc import (
    BadName,
    BadObject,
    GitCommandError,
    GitCommandNotFound,
    InvalidGitRepositoryError,
    NoSuchPathError,
    ODBError,
)

from .errors import StoreBroken
from .files import locked, sync_folder, write_all

AUTHOR = "Wavedeck <wavedeck@localhost>"
FILE_MODE = 0o100644
LOCK_WAIT_S = 60.0
SHA_LENGTH = 40
RENAME_TRIES = 100
SYNCS = 8
STALE_S = 2.0
"""A ref lock that stands this long while we hold the store's lock belongs to nobody: git holds one for milliseconds."""


class LooseObjects:
    """Writes git objects as loose files, many at a time.

    Objects wait until `flush`, which writes them, syncs them side by side (a disk answers ten waits about as fast as two) and then
    gives them their names: content is never behind a name, as a power cut could leave it otherwise. Names are left to the file
    system's own order, as git does; what a power cut takes of them is made again from the journal.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: dict[Path, bytes] = {}

    def add(self, kind: bytes, data: bytes) -> str:
        """Take an object in and return its id."""
        whole = b"%s %d\0" % (kind, len(data)) + data
        sha = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        path = self._folder / sha[:2] / sha[2:]
        if path not in self._waiting and not path.exists():
            self._waiting[path] = zlib.compress(whole, 1)
        return sha

    def flush(self) -> None:
        """Have everything that waits on disk when this returns; `OSError` when the disk refuses, nothing waits then."""
        waiting, self._waiting = self._waiting, {}
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
                self._name(temporary, path)
        except BaseException:
            for temporary in written.values():
                temporary.unlink(missing_ok=True)
            raise
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _name(self, temporary: Path, path: Path) -> None:
        """Rename; a packing at the same time removes folders that it emptied, at any moment."""
        for _ in range(RENAME_TRIES):
            with suppress(FileNotFoundError):
                temporary.rename(path)
                return
            path.parent.mkdir(exist_ok=True)
        raise StoreBroken(
            f"{temporary} vanishes while it is written; is another program cleaning {self._folder}?"
        )


class Commit(NamedTuple):
    """A commit as read."""

    sha: str
    parents: tuple[str, ...]
    tree: str
    message: str
    wall: int
    """Seconds since the epoch, UTC."""


class Repository:
    """One repository, bare or a clone with a work tree; safe to share between threads."""

    def __init__(self, path: Path, *, lock: Path | None = None) -> None:
        """Open `path`; writing needs `lock`. `StoreBroken` when it is no repository."""
        try:
            self._repo = git.Repo(path)
        except (InvalidGitRepositoryError, NoSuchPathError) as error:
            raise StoreBroken(f"{path} is not a git repository; remove it or set WAVEDECK_HOME") from error
        self.git_dir = Path(self._repo.git_dir)
        # A GIT_DIR of the person's own (inside a hook, say) must not lead our commands to another repository.
        self._repo.git.update_environment(GIT_DIR=str(self.git_dir))
        self._objects = LooseObjects(self.git_dir / "objects")
        self._lock = lock
        self._thread_lock = threading.RLock()

    @classmethod
    def create(cls, path: Path, *, lock: Path) -> Repository:
        """Open the bare repository at `path`; where there is none it is made, whole or not at all."""
        if not path.exists():
            with locked(lock, wait_s=LOCK_WAIT_S) as got:
                if not got:
                    raise _still_locked(lock)
                if not path.exists():
                    _initialise(path)
        return cls(path, lock=lock)

    def close(self) -> None:
        """End the processes that read."""
        with self._thread_lock:
            self._repo.close()

    # Objects: those that were written are durable, and can be read, when the commit that holds them is.

    def write_file(self, data: bytes) -> str:
        """Write a file's content; returns its id."""
        return self._write(b"blob", data)

    def write_tree(self, files: Mapping[str, str]) -> str:
        """Write the folders of `files` (path to id of content); returns the root's id."""
        entries: dict[str, tuple[int, str]] = {}
        folders: dict[str, dict[str, str]] = {}
        for path, sha in files.items():
            name, slash, rest = path.partition("/")
            if slash:
                folders.setdefault(name, {})[rest] = sha
            else:
                entries[name] = (FILE_MODE, sha)
        for name, inside in folders.items():
            entries[name] = (0o40000, self.write_tree(inside))
        # Git sorts a folder as if its name ended in a slash.
        ordered = sorted(entries.items(), key=lambda item: item[0] + ("/" if item[1][0] == 0o40000 else ""))
        data = b"".join(
            b"%o %s\0" % (mode, name.encode()) + bytes.fromhex(sha) for name, (mode, sha) in ordered
        )
        return self._write(b"tree", data)

    def write_commit(self, tree: str, *, parents: Sequence[str], message: str, wall: float) -> str:
        """Write a commit by `AUTHOR` at `wall` (seconds since the epoch); the same arguments give the same id.

        It and all that was written before it is on disk when this returns; `StoreBroken` when the disk refuses.
        """
        who = f"{AUTHOR} {int(wall)} +0000"
        lines = [
            f"tree {tree}",
            *(f"parent {parent}" for parent in parents),
            f"author {who}",
            f"committer {who}",
        ]
        sha = self._write(b"commit", ("\n".join(lines) + "\n\n" + message.rstrip("\n") + "\n").encode())
        with self._thread_lock, self._on_disk():
            self._objects.flush()
        return sha

    def _write(self, kind: bytes, data: bytes) -> str:
        if self._lock is None:
            raise self._only_read()
        with self._thread_lock:
            return self._objects.add(kind, data)

    @contextmanager
    def _on_disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            raise StoreBroken(
                f"the store {self.git_dir} cannot be written ({why}); make room, then resume"
            ) from error

    def has(self, sha: str) -> bool:
        """Whether the object is there."""
        with self._thread_lock:
            try:
                self._repo.odb.info(bytes.fromhex(sha))
            except (BadObject, BadName, ValueError):
                return False
        return True

    def read_file(self, sha: str) -> bytes:
        """A file's content by its id."""
        with self._reading(sha):
            return bytes(self._repo.odb.stream(bytes.fromhex(sha)).read())

    def read_commit(self, sha: str) -> Commit:
        """A commit by its id."""
        with self._reading(sha):
            commit = self._repo.commit(sha)
            message = commit.message if isinstance(commit.message, str) else commit.message.decode()
            parents = tuple(parent.hexsha for parent in commit.parents)
            return Commit(sha, parents, commit.tree.hexsha, message, commit.authored_date)

    def read_tree(self, sha: str) -> dict[str, str]:
        """Path to id of content, for every file below a commit or tree."""
        with self._reading(sha):
            found: dict[str, str] = {}
            for item in self._repo.tree(sha).traverse():
                if isinstance(item, git.Blob):
                    found[str(item.path)] = item.hexsha
            return found

    def read_top(self, sha: str) -> dict[str, str]:
        """Name to id of content, for the files that lie directly in a commit's or tree's root."""
        with self._reading(sha):
            return {str(blob.path): blob.hexsha for blob in self._repo.tree(sha).blobs}

    def history(self, sha: str) -> Iterator[Commit]:
        """A commit and its first parents, newest first."""
        following: str | None = sha
        while following:
            commit = self.read_commit(following)
            yield commit
            following = commit.parents[0] if commit.parents else None

    @contextmanager
    def _reading(self, sha: str) -> Iterator[None]:
        with self._thread_lock, _translated():
            try:
                yield
            except (BadObject, BadName, ODBError, ValueError) as error:
                raise StoreBroken(
                    f"the store lacks the object {sha}; run: git -C {self.git_dir} fsck"
                ) from error

    # Refs

    def refs(self) -> dict[str, str]:
        """Every branch, local (`refs/heads/...`) and fetched (`refs/remotes/...`), with the id of its commit."""
        with self._thread_lock, _translated():
            listed = self._repo.git.for_each_ref(
                "--format=%(objectname) %(refname)", "refs/heads", "refs/remotes"
            )
        pairs = (line.split(" ", 1) for line in listed.splitlines())
        return {name: sha for sha, name in pairs}

    def read_ref(self, ref: str) -> str | None:
        """The commit that a ref of this store names; `None` where there is none. A clone's refs are read by `refs`."""
        with self._thread_lock:
            # In this order: git writes `packed-refs` before it removes what went into it.
            for path, name in ((self.git_dir / ref, ""), (self.git_dir / "packed-refs", ref)):
                with suppress(OSError):
                    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                        sha, _, named = line.partition(" ")
                        if named == name and len(sha) == SHA_LENGTH:
                            return sha
        return None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the store's lock: refs are written, and read in order to be written, inside this only."""
        if self._lock is None:
            raise self._only_read()
        with self._thread_lock, locked(self._lock, wait_s=LOCK_WAIT_S) as got:
            if not got:
                raise _still_locked(self._lock)
            yield

    def _only_read(self) -> StoreBroken:
        return StoreBroken(f"{self.git_dir} was opened for reading only")

    def write_ref(self, ref: str, sha: str) -> None:
        """Point a ref at a commit, durable when this returns; only inside `writing`.

        The new value is written to git's own `<ref>.lock`, so that a git command of a person's never writes at the same time.
        """
        path = self.git_dir / ref
        fresh = [folder for folder in path.parents if not folder.exists()]
        with self._on_disk():
            lock = path.with_name(path.name + ".lock")
            descriptor = _take_ref_lock(lock)
            try:
                write_all(descriptor, sha.encode() + b"\n")
                os.fsync(descriptor)
                lock.rename(path)
            except BaseException:
                lock.unlink(missing_ok=True)
                raise
            finally:
                os.close(descriptor)
            for folder in {path.parent, *fresh, *(folder.parent for folder in fresh)}:
                # A person's `git pack-refs` may have taken the ref, and the folder, into its own synced file.
                with suppress(FileNotFoundError):
                    sync_folder(folder)

    def delete_refs(self, refs: Sequence[str]) -> None:
        """Take refs away, packed ones too; only inside `writing`. Their objects stay until `git gc` finds them unused."""
        self.clear_stale_locks()
        with _translated():
            for ref in refs:
                self._repo.git.update_ref("-d", ref)

    def clear_stale_locks(self) -> list[Path]:
        """Remove git locks that a killed process left; only inside `writing`. Returns what was removed."""
        now = time.time()
        candidates = [*(self.git_dir / "refs").rglob("*.lock"), *self.git_dir.glob("*.lock")]
        stale = []
        for lock in candidates:
            try:
                if now - lock.stat().st_mtime < STALE_S:
                    continue
                lock.unlink()
            except FileNotFoundError:
                continue
            stale.append(lock)
        return stale

    def pack(self) -> None:
        """Pack loose objects and refs. Other writers may go on meanwhile: what they add is left loose."""
        with _translated():
            self._repo.git.repack("-d", "-l", "-q")
            with self.writing():
                self.clear_stale_locks()
                self._repo.git.pack_refs("--all")
        # Git syncs files and leaves their names to chance; after this the live files may go.
        for folder in (self.git_dir / "objects" / "pack", self.git_dir / "refs" / "heads", self.git_dir):
            sync_folder(folder)


def _initialise(path: Path) -> None:
    with _translated():
        unfinished = path.with_name(f"{path.name}.new-{os.getpid()}")
        repo = git.Repo.init(unfinished, mkdir=True, bare=True)
        try:
            # A clone checks out what people accepted.
            repo.git.symbolic_ref("HEAD", "refs/heads/accepted")
            repo.git.config("gc.auto", "0")
            repo.git.config("receive.autogc", "false")
            repo.git.config("maintenance.auto", "false")
        finally:
            repo.close()
        unfinished.rename(path)
        sync_folder(path.parent)


def _take_ref_lock(lock: Path) -> int:
    limit = time.monotonic() + STALE_S
    while True:
        # Inside the loop: `git pack-refs` removes folders that it emptied.
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            return os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            if time.monotonic() >= limit:
                lock.unlink(missing_ok=True)
            else:
                time.sleep(0.01)
        except FileNotFoundError:
            continue


def _still_locked(lock: Path) -> StoreBroken:
    return StoreBroken(f"{lock} has been held for {LOCK_WAIT_S:g} s; find its holder with: fuser {lock}")


@contextmanager
def _translated() -> Iterator[None]:
    """Git's own failures as ours, in one line."""
    try:
        yield
    except GitCommandNotFound as error:
        raise StoreBroken("git is not installed; the store needs it") from error
    except GitCommandError as error:
        lines = [line.strip() for line in str(error.stderr).splitlines() if line.strip()]
        raise StoreBroken(f"git failed in the store: {lines[0] if lines else error.status}") from error

"""A bare git repository with durable writes and without one process per object; `sessions.store.store` defines its layout.

GitPython reads objects (through one long-lived `git cat-file --batch`) and runs the few git commands. Objects and
refs are written here, because GitPython starts one `git hash-object` per object and syncs nothing. The files are
those that git itself would write, so plain git reads, clones, checks and packs them.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from configparser import Error as ConfigError
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path

# Without git in PATH, the import of GitPython would raise a long error; `quiet` delays the error to the first command.
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

from sessions.errors import StoreBroken, StoreDamaged
from sessions.files import locked, sync_file, sync_folder, write_all
from sessions.git_environment import SETTINGS, drop_git_variables

from .importing import ImportStream, import_into
from .loose_objects import LooseObjects
from .refs import Refs, check_skeleton, read_ref, read_refs

HEADS = "refs/heads/"
NO_GIT = "git is not installed; the store needs it"
AUTHOR = "Wavedeck <wavedeck@localhost>"
FILE_MODE = 0o100644
MOST_BYTES = 1 << 30
"""Most bytes of a file, and of a session's journal: a fetched object of 6 MB can hold 6 GB of zeros."""
MOST_FILES = 200_000
"""Most files and folders of a commit: ten small trees that repeat each other can hold more than a disk."""
LOCK_WAIT_S = 60.0
STALE_S = 2.0
"""Age from which a ref lock has no owner, while this process holds the store's lock: git holds a ref lock for
milliseconds."""

IMPORT_S = 86_400.0
"""Age from which a folder of `importing` has no owner."""

CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\thooksPath = /dev/null
\tfsmonitor = false
[gc]
\tauto = 0
[receive]
\tautogc = false
[maintenance]
\tauto = false
"""
"""Settings of a new store; they also hold for the git commands of people."""


def open_git(path: Path) -> git.Repo:
    """Open a repository of which GitPython runs every command with `SETTINGS`; raises GitPython's errors."""
    drop_git_variables()
    repo = git.Repo(path, expand_vars=False)
    repo.git.set_persistent_git_options(c=list(SETTINGS))
    repo.git.update_environment(GIT_DIR=str(repo.git_dir))
    return repo


class Repository:
    """One bare repository; threads may share it."""

    def __init__(self, path: Path, *, lock: Path | None = None) -> None:
        """Open `path`; writing needs `lock`. `StoreBroken` if it is not a repository or is damaged."""
        check_skeleton(path)
        try:
            self._repo = open_git(path)
        except (InvalidGitRepositoryError, NoSuchPathError) as error:
            words = "is not a git repository; move it away, or set WAVEDECK_HOME to another folder"
            raise StoreBroken(f"{path} {words}") from error
        except (ConfigError, UnicodeError) as error:
            raise StoreBroken(
                f"{path / 'config'} is no configuration of git; compare it with the file of another store"
            ) from error
        self.git_dir = Path(self._repo.git_dir)
        # The person's settings are for their own repositories.
        self._repo.git.update_environment(
            GIT_CONFIG_GLOBAL=os.devnull,
            GIT_CONFIG_NOSYSTEM="1",
            GIT_CONFIG_COUNT="0",
            GIT_CONFIG_PARAMETERS="",
        )
        self._objects = LooseObjects(self.git_dir / "objects")
        self._lock = lock
        self._thread_lock = threading.RLock()

    @classmethod
    def create(cls, path: Path, *, lock: Path) -> Repository:
        """Open the bare repository at `path`; if there is none, create it, completely or not at all."""
        if not path.exists():
            with _held(lock):
                if not path.exists():
                    _initialise(path)
        return cls(path, lock=lock)

    def close(self) -> None:
        """End the reading processes."""
        with self._thread_lock:
            self._repo.close()

    # Objects: they are durable and readable after `write_commit` or `sync_added`.

    def write_files(self, files: Mapping[str, bytes]) -> dict[str, str]:
        """Write the contents of files; returns the id of each by path."""
        return {path: self._write(b"blob", data) for path, data in files.items()}

    def write_tree(self, files: Mapping[str, str]) -> str:
        """Write the folders of `files` (path to id of content); returns the id of the root."""
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
        """Write a commit as `add_commit` does, and sync it as `sync_added` does."""
        sha = self.add_commit(tree, parents=parents, message=message, wall=wall)
        self.sync_added()
        return sha

    def add_commit(self, tree: str, *, parents: Sequence[str], message: str, wall: float) -> str:
        """Add a commit by `AUTHOR` at `wall` (seconds since the epoch); equal arguments give the same id."""
        who = f"{AUTHOR} {int(wall)} +0000"
        lines = [
            f"tree {tree}",
            *(f"parent {parent}" for parent in parents),
            f"author {who}",
            f"committer {who}",
        ]
        return self._write(b"commit", ("\n".join(lines) + "\n\n" + message.rstrip("\n") + "\n").encode())

    def sync_added(self) -> None:
        """Bring all added objects to the disk. Raises `StoreBroken` if the disk refuses."""
        with self._thread_lock, self._on_disk():
            self._objects.flush()

    def _write(self, kind: bytes, data: bytes) -> str:
        if self._lock is None:
            raise self._read_only_error()
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
        """True if the object exists."""
        try:
            with self._reading(sha):
                self._repo.odb.info(bytes.fromhex(sha))
        except StoreDamaged:
            return False
        return True

    def is_complete(self, commits: Iterable[str]) -> bool:
        """True if the commits and all that they reach are here: one git process, which reads no file contents."""
        with tempfile.TemporaryFile() as wanted:
            wanted.writelines(f"{sha}\n".encode() for sha in commits)
            if not wanted.tell():
                return True
            wanted.seek(0)
            with self._thread_lock, _translated():
                try:
                    self._repo.git.rev_list("--objects", "--quiet", "--stdin", istream=wanted)
                except GitCommandNotFound:
                    raise
                except GitCommandError:
                    return False
        return True

    def read_file(self, sha: str) -> bytes:
        """Returns a file's content by its id. Raises `StoreDamaged` for more than `MOST_BYTES`."""
        with self._reading(sha):
            stream = self._repo.odb.stream(bytes.fromhex(sha))
            if stream.size > MOST_BYTES:
                # Else GitPython reads what is left; `_reading` ends the process that would send it.
                stream.stream._nbr = stream.size
                raise ValueError("too large")
            return bytes(stream.read())

    def size_of(self, sha: str) -> int:
        """Returns the bytes of a file by its id."""
        with self._reading(sha):
            return int(self._repo.odb.info(bytes.fromhex(sha)).size)

    def read_tree(self, sha: str) -> dict[str, str]:
        """Returns the id of every file below a commit or tree, by path."""
        with self._reading(sha):
            items = islice(self._repo.tree(sha).traverse(), MOST_FILES + 1)
            files = {str(item.path): item.hexsha for item in items if isinstance(item, git.Blob)}
            if next(items, None) is not None:
                raise ValueError("too many files")
            return files

    def history(self, sha: str) -> Iterator[tuple[str, str]]:
        """Yield id and message of a commit, then of its first parents, newest first."""
        following: str | None = sha
        while following:
            with self._reading(following):
                commit = self._repo.commit(following)
                message = commit.message if isinstance(commit.message, str) else commit.message.decode()
                parent = commit.parents[0].hexsha if commit.parents else None
            yield following, message
            following = parent

    def is_ancestor(self, sha: str, descendant: str) -> bool:
        """True if the first commit is in the history of the second; False if it is not in this store."""
        if not self.has(sha):
            return False
        with self._thread_lock, _translated():
            return bool(self._repo.is_ancestor(self._repo.commit(sha), self._repo.commit(descendant)))

    @contextmanager
    def _reading(self, sha: str) -> Iterator[None]:
        with self._thread_lock, _translated():
            try:
                yield
            except (BadObject, BadName, ODBError, ValueError, OSError) as error:
                # The reading process ends at a damaged object; the next read starts another.
                self._repo.git.clear_cache()
                raise StoreDamaged(f"the store {self.git_dir} has no object {sha}") from error

    # Refs

    def branches(self) -> Refs:
        """Returns every branch with the id of its commit, and the damaged ones."""
        return read_refs(self.git_dir)

    def read_ref(self, ref: str) -> str | None:
        """Returns the commit of a ref; `None` if there is none."""
        return read_ref(self.git_dir, ref)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the store's lock: refs are written, and read in order to be written, only inside this block."""
        if self._lock is None:
            raise self._read_only_error()
        with self._thread_lock, _held(self._lock):
            yield

    def _read_only_error(self) -> StoreBroken:
        return StoreBroken(f"{self.git_dir} was opened for reading only")

    def write_ref(self, ref: str, sha: str) -> None:
        """Point a ref at a commit, durable when this returns; only inside `writing`.

        The new value is written to git's own `<ref>.lock`, so that a git command of a person never writes at the same
        time.
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
                # A `git pack-refs` of a person may have moved the ref into `packed-refs` and removed the folder.
                with suppress(FileNotFoundError):
                    sync_folder(folder)

    def delete_refs(self, refs: Sequence[str]) -> None:
        """Delete refs, also packed ones; only inside `writing`. `git gc` later deletes their objects."""
        if not refs:
            return
        self.clear_stale_locks()
        with _translated(), tempfile.TemporaryFile() as commands:
            commands.write("".join(f"delete {ref}\0\0" for ref in refs).encode())
            commands.seek(0)
            self._repo.git.update_ref("--stdin", "-z", istream=commands)

    def clear_stale_locks(self) -> list[Path]:
        """Remove git locks of killed processes and return their paths; only inside `writing`."""
        now = time.time()
        # Not `rglob`: a git command of a person may remove folders at the same time.
        refs = [Path(folder) / name for folder, _, names in os.walk(self.git_dir / "refs") for name in names]
        candidates = [*(path for path in refs if path.suffix == ".lock"), *self.git_dir.glob("*.lock")]
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
        """Pack loose objects and refs. Objects that other writers add during this call stay loose."""
        with _translated():
            self._repo.git.repack("-d", "-l", "-q")
            with self.writing():
                self.clear_stale_locks()
                self._repo.git.pack_refs("--all")
        # Git does not sync the folders.
        for folder in (self.git_dir / "objects" / "pack", self.git_dir / "refs" / "heads", self.git_dir):
            sync_folder(folder)

    @contextmanager
    def importing(self) -> Iterator[ImportStream]:
        """Yield a stream of commits. After the block the store has their objects, in one pack, and its refs are as before.

        Git writes the pack beside the store: what is damaged in the store is not taken for the same object.
        """
        if self._lock is None:
            raise self._read_only_error()
        for remains in self.git_dir.glob("import-*"):
            # Left by a killed process; a younger one may be at work.
            with suppress(FileNotFoundError):
                if time.time() - remains.stat().st_mtime > IMPORT_S:
                    shutil.rmtree(remains, ignore_errors=True)
        with (
            tempfile.TemporaryDirectory(prefix="import-", dir=self.git_dir) as place,
            self._on_disk(),
            _translated(),
        ):
            beside = Path(place) / "beside.git"
            _initialise(beside)
            with closing(open_git(beside)) as repo, import_into(repo, author=AUTHOR) as stream:
                yield stream
            packs, made = self.git_dir / "objects" / "pack", beside / "objects" / "pack"
            packs.mkdir(parents=True, exist_ok=True)
            # The index last: with it, git uses the pack.
            for path in sorted(made.iterdir(), key=lambda path: path.suffix == ".idx"):
                sync_file(path)
                path.rename(packs / path.name)
            sync_folder(packs)

    def problem(self) -> str:
        """Returns what git finds damaged, in one line; empty if every ref and every object is sound. Reads the whole store."""
        if damaged := sorted(self.branches().damaged):
            return f"the store's file {self.git_dir / damaged[0]} is damaged"
        with _translated():
            status, _, complaints = self._repo.git.fsck(
                "--no-dangling", "--no-progress", with_extended_output=True, with_exceptions=False
            )
        words = next((line for line in complaints.splitlines() if not line.startswith("notice")), "")
        return f"the store {self.git_dir} is damaged ({words})" if status else ""

    def dangling(self) -> list[str]:
        """Returns the newest commits that no ref reaches."""
        with _translated():
            _, lines, _ = self._repo.git.fsck(
                "--connectivity-only", "--no-progress", with_extended_output=True, with_exceptions=False
            )
        return re.findall(r"^dangling commit (\w+)$", lines, re.MULTILINE)

    def index_packs(self) -> None:
        """Write the index of each pack again; a pack that cannot be read keeps its own."""
        for pack in (self.git_dir / "objects" / "pack").glob("*.pack"):
            index = pack.with_suffix(".idx")
            with (
                tempfile.TemporaryDirectory(dir=self.git_dir) as folder,
                suppress(StoreBroken),
                _translated(),
            ):
                self._repo.git.index_pack("-o", f"{folder}/{index.name}", str(pack))
                Path(folder, index.name).replace(index)

    def sync_objects(self) -> None:
        """Make the names of loose objects durable: for a store that cannot be packed."""
        objects = self.git_dir / "objects"
        for folder in (*objects.glob("??"), objects):
            # A packing process removes empty folders.
            with suppress(FileNotFoundError):
                sync_folder(folder)


def _initialise(path: Path) -> None:
    """Write the files that `git init --bare` would write, but no file of a template, and no setting of the person."""
    unfinished = path.with_name(f"{path.name}.new-{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)  # a killed process may have had this number
    # Not through the umask: hooks and settings of other users must not get in.
    unfinished.mkdir(mode=0o700)
    for folder in ("info", "objects/info", "objects/pack", "refs/heads", "refs/tags"):
        (unfinished / folder).mkdir(parents=True)
    # A clone checks out the accepted kernels.
    (unfinished / "HEAD").write_text("ref: refs/heads/accepted\n")
    (unfinished / "config").write_text(CONFIG)
    # `git show` of an attempt then shows only the files that people read.
    (unfinished / "info" / "attributes").write_text("*.jsonl -diff\nevaluation.json -diff\nprompts/* -diff\n")
    unfinished.rename(path)
    sync_folder(path.parent)


def _take_ref_lock(lock: Path) -> int:
    limit = time.monotonic() + STALE_S
    while True:
        # Inside the loop: `git pack-refs` removes empty folders.
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


@contextmanager
def _held(lock: Path) -> Iterator[None]:
    with locked(lock, wait_s=LOCK_WAIT_S) as got:
        if not got:
            raise StoreBroken(
                f"{lock} has been held for {LOCK_WAIT_S:g} s; find its holder with: fuser {lock}"
            )
        yield


@contextmanager
def _translated() -> Iterator[None]:
    """Raise git's errors as `StoreBroken`, in one line."""
    try:
        yield
    except GitCommandNotFound as error:
        raise StoreBroken(NO_GIT) from error
    except GitCommandError as error:
        lines = [line.strip() for line in str(error.stderr).splitlines() if line.strip()]
        words = lines[0].removeprefix("stderr: '").removesuffix("'") if lines else error.status
        raise StoreBroken(f"git failed in the store: {words}") from error

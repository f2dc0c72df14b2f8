"""Sessions pushed to another git repository and fetched from it; nothing on either side is overwritten.

All branches of a session go together: of a running session, the part that is in the store.
The kernels on the branch `accepted` stay, because each home decides for itself. A fetch notes which decisions came with a
session, so that they never count as this home's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from git.exc import GitCommandError, GitCommandNotFound

from sessions import recorded_example as example
from sessions.errors import BranchDiffers, CommandRefused, RemoteUnusable, StoreBroken, StoreDamaged
from sessions.files import FileLock
from sessions.git_environment import SETTINGS
from sessions.home import Home
from sessions.names import SESSION, choose_session

from .recorder import LOCK_WAIT_S
from .repository import HEADS, NO_GIT, open_git
from .restoring import has_whole_journal, last_decision
from .store import Store, journal_branch

FETCHED = "refs/wavedeck/fetched/"
"""Prefix of the refs that hold fetched branches until they are compared with the store's."""


class SharedSessions(NamedTuple):
    """The result of a push or a fetch."""

    sessions: tuple[str, ...]
    """Sessions with new commits on the other side of the exchange, by name."""
    unchanged: tuple[str, ...]
    """Sessions that both sides already had."""


def push_sessions(
    home: Home, address: str, prefixes: Sequence[str] = (), *, on_progress: Callable[[str], None]
) -> SharedSessions:
    """Push sessions (names or unique prefixes; all without) of the store to a repository.

    Raises `BranchDiffers` if the repository has another version of a branch; nothing is pushed then. Raises
    `RemoteUnusable`, `NoSuchSession` or `AmbiguousSession`. `on_progress` gets each line of git's progress.
    """
    if not home.store.exists():
        return _shared(_chosen(prefixes, ()), ())
    with Store.read_only(home.store) as store, Remote(store.repository.git_dir, address) as remote:
        heads = store.heads()
        names = _chosen(prefixes, _sessions(heads))
        theirs = remote.heads()
        branches = _branches(heads, names)
        ahead = [branch for branch in branches if theirs.get(branch) != heads[branch]]
        for branch in ahead:
            sha = theirs.get(branch)
            if sha is not None and not store.repository.is_ancestor(sha, heads[branch]):
                raise BranchDiffers(branch, where=remote.address)
        if ahead:
            remote.push(ahead, on_progress)
        return _shared(names, ahead)


def fetch_sessions(
    home: Home, address: str, prefixes: Sequence[str] = (), *, on_progress: Callable[[str], None]
) -> SharedSessions:
    """Fetch sessions (names or unique prefixes; all without) of a repository into the store.

    Raises `BranchDiffers` if the store has another version of a branch; the store is then unchanged. Raises
    `RemoteUnusable`, `NoSuchSession` or `AmbiguousSession`. `on_progress` gets each line of git's progress.
    """
    home.ensure()
    with Store.of(home) as store, Remote(store.repository.git_dir, address) as remote:
        theirs = remote.heads()
        names = _chosen(prefixes, _sessions(theirs))
        own = store.heads()
        fresh = [branch for branch in _branches(theirs, names) if own.get(branch) != theirs[branch]]
        if not fresh:
            return _shared(names, fresh)
        try:
            remote.fetch([f"+{HEADS}{branch}:{FETCHED}{branch}" for branch in fresh], on_progress)
            _take_over(home, store, fresh)
        finally:
            with store.repository.writing():
                store.repository.delete_refs([FETCHED + branch for branch in fresh])
        return _shared(names, fresh)


def _take_over(home: Home, store: Store, branches: Sequence[str]) -> None:
    """Move the store's branches to the fetched commits, all of them or none."""
    repository = store.repository
    fetched = {branch: repository.read_ref(FETCHED + branch) for branch in branches}
    sessions = {branch.partition("/")[0] for branch in branches}
    with ExitStack() as undo:
        here = [home.files(session) for session in sorted(sessions) if home.files(session).folder.is_dir()]
        for files in here:
            lock = FileLock(files.lock)
            undo.callback(lock.release)
            # An engine continues the journal, so the store must not run ahead of it.
            if not lock.acquire(wait_s=LOCK_WAIT_S) or files.journal.exists():
                raise BranchDiffers(journal_branch(files.session), where=str(home.store))
            if files.has_journal and not has_whole_journal(store, files):
                raise StoreDamaged(f"the store lost a part of {files.session}")
        undo.enter_context(repository.writing())
        for branch, sha in fetched.items():
            own = repository.read_ref(HEADS + branch)
            if sha is None or (own is not None and not repository.is_ancestor(own, sha)):
                raise BranchDiffers(branch, where=str(home.store))
        # Before the branches: a kill in between must not make the decisions this home's.
        for session in _sessions(fetched):
            lines = store.session_lines(session, commit=fetched[journal_branch(session)])
            home.files(session).note_fetched(last_decision(lines), is_foreign=True)
        for files in here:
            # The store has all of a compressed journal, and it is written again with what is new.
            files.stored_journal.unlink(missing_ok=True)
        # Journals last: a session is listed when all its branches are here.
        for branch in sorted(branches, key=lambda name: name in map(journal_branch, _sessions(fetched))):
            sha = fetched[branch]
            assert sha is not None
            repository.write_ref(HEADS + branch, sha)


def _sessions(branches: Collection[str]) -> list[str]:
    """Returns the names of the sessions with a journal among the branches, oldest first."""
    names = sorted({branch.partition("/")[0] for branch in branches})
    return [name for name in names if SESSION.fullmatch(name) and journal_branch(name) in branches]


def _branches(heads: Mapping[str, str], sessions: Sequence[str]) -> list[str]:
    return [branch for branch in heads if branch.partition("/")[0] in sessions]


def _chosen(prefixes: Sequence[str], names: Sequence[str]) -> list[str]:
    """Returns the sessions that the prefixes name, all without prefixes."""
    if example.NAME in prefixes and example.NAME not in names:
        raise CommandRefused(example.READ_ONLY)
    return (
        list(dict.fromkeys(choose_session(prefix, names) for prefix in prefixes)) if prefixes else list(names)
    )


def _shared(names: Sequence[str], branches: Sequence[str]) -> SharedSessions:
    moved = {branch.partition("/")[0] for branch in branches}
    return SharedSessions(
        tuple(name for name in names if name in moved), tuple(name for name in names if name not in moved)
    )


CHUNK_BYTES = 4096
KEPT_LINES = 20
"""Last lines of git's output, which hold the cause of a failure."""


class Remote:
    """A repository that the store at `git_dir` exchanges branches with."""

    def __init__(self, git_dir: Path, address: str, *, settings: Sequence[str] = SETTINGS) -> None:
        """`address` is a path, a URL or the name of a remote of the store; `RemoteUnusable` if it is an option or a helper."""
        if address.startswith("-") or not address.strip():
            raise RemoteUnusable(address, why="it is no path and no URL")
        if re.match(r"\w+::", address):
            raise RemoteUnusable(address, why="a remote helper of git, which could run any program")
        # Git runs in the store's folder, so a relative path must not reach it.
        self.address = str(Path(address).absolute()) if Path(address).exists() else address
        self._repo = open_git(git_dir)
        self._settings = settings

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *exception: object) -> None:
        self._repo.close()

    def heads(self) -> dict[str, str]:
        """Returns the commit of each branch of the remote, by the branch's name."""
        with self._translated():
            listed = str(self._repo.git.ls_remote("--heads", "--", self.address))
        pairs = (line.split("\t", 1) for line in listed.splitlines() if "\t" in line)
        return {ref.removeprefix(HEADS): sha for sha, ref in pairs}

    def push(self, branches: Sequence[str], on_progress: Callable[[str], None]) -> None:
        """Send branches of the store; all of them arrive, or none. Git refuses to overwrite a branch that differs."""
        refs = [f"{HEADS}{branch}:{HEADS}{branch}" for branch in branches]
        self._exchange(["push", "--atomic", "--progress", "--", self.address, *refs], on_progress)

    def fetch(self, refs: Sequence[str], on_progress: Callable[[str], None]) -> None:
        """Fetch refs of the remote, as git's `SOURCE:DESTINATION`, all of them or none."""
        options = ["--atomic", "--no-tags", "--no-write-fetch-head", "--progress"]
        self._exchange(["fetch", *options, "--", self.address, *refs], on_progress)

    def _exchange(self, arguments: Sequence[str], on_progress: Callable[[str], None]) -> None:
        options = [part for setting in self._settings for part in ("-c", setting)]
        last_lines: list[str] = []
        with self._translated(last_lines):
            process = self._repo.git.execute(["git", *options, *arguments], as_process=True)
            for line in _lines(process.stderr):
                last_lines[:] = [*last_lines[-KEPT_LINES:], line]
                on_progress(line)
            process.wait()

    @contextmanager
    def _translated(self, printed: Sequence[str] = ()) -> Iterator[None]:
        """Raise a failure of git as `RemoteUnusable`, with the cause that git printed."""
        try:
            yield
        except GitCommandNotFound as error:
            raise StoreBroken(NO_GIT) from error
        except GitCommandError as error:
            lines = printed or str(error.stderr).strip().removesuffix("'").splitlines()
            raise RemoteUnusable(self.address, why=_cause(lines)) from error


def _lines(stream: IO[bytes]) -> Iterator[str]:
    """Yield the lines of git's progress, which end with a carriage return or a line end."""
    pending = b""
    while chunk := stream.read1(CHUNK_BYTES):  # type: ignore[attr-defined]  # a pipe of a process is buffered
        *lines, pending = (pending + chunk).replace(b"\r", b"\n").split(b"\n")
        yield from (line.decode(errors="replace").strip() for line in lines if line.strip())
    if pending.strip():
        yield pending.decode(errors="replace").strip()


def _cause(lines: Sequence[str]) -> str:
    """Returns the line of git's output that names the cause of a failure."""
    words = [
        line.strip().removeprefix("stderr: ").removeprefix("'").strip() for line in lines if line.strip()
    ]
    # Behind this line ssh has printed the cause.
    words = [line for line in words if not line.startswith("fatal: Could not read from remote")] or words
    for start in ("fatal:", "ssh:", "error:", "!"):
        for line in words:
            if line.startswith(start):
                return line.removeprefix(start).strip()
    return words[0] if words else "git gave no reason"

"""Another git repository with sessions, reached by plain git: its branches, and branches sent and fetched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from git.exc import GitCommandError, GitCommandNotFound

from sessions.errors import RemoteUnusable, StoreBroken
from sessions.git_environment import SETTINGS

from .repository import HEADS, NO_GIT, open_git

CHUNK_BYTES = 4096
KEPT_LINES = 20
"""Last lines of git's output, which hold the cause of a failure."""


class Remote:
    """A repository that the store at `git_dir` exchanges branches with."""

    def __init__(self, git_dir: Path, address: str) -> None:
        """`address` is a path, a URL or the name of a remote of the store; `RemoteUnusable` if it is an option or a helper."""
        if address.startswith("-") or not address.strip():
            raise RemoteUnusable(address, why="it is no path and no URL")
        if re.match(r"\w+::", address):
            raise RemoteUnusable(address, why="a remote helper of git, which could run any program")
        # Git runs in the store's folder, so a relative path must not reach it.
        self.address = str(Path(address).absolute()) if Path(address).exists() else address
        self._repo = open_git(git_dir)

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

    def fetch(self, branches: Sequence[str], prefix: str, on_progress: Callable[[str], None]) -> None:
        """Fetch branches of the remote to refs `<prefix><branch>` of the store, which it overwrites."""
        refs = [f"+{HEADS}{branch}:{prefix}{branch}" for branch in branches]
        options = ["--no-tags", "--no-write-fetch-head", "--progress"]
        self._exchange(["fetch", *options, "--", self.address, *refs], on_progress)

    def _exchange(self, arguments: Sequence[str], on_progress: Callable[[str], None]) -> None:
        options = [part for setting in SETTINGS for part in ("-c", setting)]
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

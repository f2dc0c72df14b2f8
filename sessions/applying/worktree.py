"""A kernel on a new branch of a repository, in a git worktree of its own. Nothing is pushed, and the person's files stay."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sessions.errors import NotApplicable
from suites.task import Task

from .before_after import run_shell
from .merging import changed_definition, merge

OF_CALLER = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Variables of a git hook that would lead git into another repository."""
CALLS = 3
"""Most calls of a function that a message names."""


def original_path(task: Task) -> str:
    """Return the path of the task's original file from the root of its repository; empty if the task does not say it."""
    if task.original or task.package is None:
        return task.original
    file = task.package.file.resolve()
    root = next((folder for folder in file.parents if (folder / ".git").exists()), None)
    return "" if root is None else file.relative_to(root).as_posix()


class Repository:
    """A person's git repository."""

    def __init__(self, path: Path) -> None:
        """Raises `NotApplicable` if `path` is in no git repository, or if it has no commit."""
        try:
            self._root = path
            self._root = Path(self._git("rev-parse", "--show-toplevel").strip())
            self._git("rev-parse", "--verify", "HEAD")
        except (OSError, NotApplicable) as error:
            raise NotApplicable(
                f"{path} is not a git repository with a commit; name one with --to"
            ) from error

    def find_file(self, task: Task, original: str, file: str = "") -> str:
        """Return the path of the file that the task was made of, relative to the root.

        `file` names it. Else it is the path that the task has, or the only file of HEAD with the original's text. Raises
        `NotApplicable` if there is none, if it has changes that are not committed, or if a definition of the original
        changed.
        """
        path = self._named(file) if file else original_path(task) or self._with_text(original)
        if not path or path not in self._files():
            problem = (
                f"{file or path} is no file of HEAD"
                if file or path
                else f"no file of HEAD is {task.id}'s original"
            )
            calls = self._calls(task.entry_points[0].name)
            raise NotApplicable(
                f"{problem}; name the file of the kernel with --file PATH"
                + (f", or wire it by hand where the function is called: {', '.join(calls)}" if calls else "")
            )
        if self._git("status", "--porcelain", "--", path):
            raise NotApplicable(f"{path} has changes that are not committed; commit or stash them")
        try:
            changed = changed_definition(original, self.read(path))
        except (SyntaxError, ValueError) as error:
            raise NotApplicable(f"{path} is no Python file; name another file with --file") from error
        if changed:
            raise NotApplicable(
                f"`{changed}` in {path} is not as in the original of {task.id}: the file changed since the task was made; "
                "make the task again from it"
            )
        return path

    def read(self, path: str) -> str:
        """Return the text of a file at HEAD."""
        return self._git("show", f"HEAD:{path}")

    def _files(self) -> Sequence[str]:
        return self._git("ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD").split("\0")

    def _named(self, file: str) -> str:
        """Return the path from the root; a relative one may also begin at the current folder."""
        if file in self._files():
            return file
        absolute = Path(file).resolve()
        return absolute.relative_to(self._root).as_posix() if absolute.is_relative_to(self._root) else file

    def _with_text(self, text: str) -> str:
        """Return the only file of HEAD with this text; empty if there is none, or if several have it."""
        blob = self._git("hash-object", "--stdin", standard_input=text).strip()
        entries = (
            entry.partition("\t")
            for entry in self._git("ls-tree", "-r", "-z", "--full-tree", "HEAD").split("\0")
        )
        paths = [path for facts, _, path in entries if facts.endswith(blob)]
        return paths[0] if len(paths) == 1 else ""

    def read_if_there(self, path: str) -> str | None:
        """Return the text of a file at HEAD; `None` if it is not there. Raises `NotApplicable` if it has other changes."""
        if self._git("status", "--porcelain", "--", path):
            raise NotApplicable(f"{path} has changes that are not committed; commit or stash them")
        return self.read(path) if path in self._files() else None

    def merged(self, path: str, kernel: str, task: Task) -> str:
        """Return the text of a file at HEAD with the kernel in it. Raises `NotApplicable`."""
        names = [entry.name for entry in task.entry_points]
        return merge(
            self.read(path),
            kernel,
            names,
            is_used_elsewhere=lambda name: self._mentions(name, other_than=path),
        )

    def apply(
        self,
        path: str,
        text: str,
        *,
        branch: str,
        folder: Path,
        message: str,
        test: str = "",
        compare: Callable[[tuple[Path, Path]], None] | None = None,
    ) -> str:
        """Commit a file with a new text to a new branch, in a new worktree `folder`; return the commit.

        `test` is a shell command that must end with 0 before and after the change. `compare` gets a worktree of the original
        commit, which is removed after it, and `folder` with the change. If anything fails or raises, neither branch nor
        folder is left. Raises `NotApplicable`.
        """
        if path in self._files() and text == self.read(path):
            raise NotApplicable(f"{path} has this already")
        if self._git("branch", "--list", branch):
            raise NotApplicable(f"the branch {branch} exists already; delete it, or use it")
        if folder.exists():
            raise NotApplicable(
                f"{folder} exists already; remove it with: git worktree remove --force {folder}"
            )
        with self._worktree(branch, folder):
            if test:
                run_shell(test, folder, f"{test!r} fails before the change")
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with (folder / path).open("w", encoding="utf-8", newline="") as file:
                file.write(text)
            if test:
                run_shell(test, folder, f"{test!r} passes before the change and fails after it")
            if compare is not None:
                with self._original(folder.with_name("original")) as original:
                    compare((original, folder))
            self._git("add", "--intent-to-add", "--", path, folder=folder)
            # The person signs and checks the commit later, so no hook and no signature now.
            commit = ("commit", "-q", "--no-verify", "--no-gpg-sign", "-F", "-", "--", path)
            self._git(*commit, folder=folder, standard_input=message)
        return self._git("rev-parse", branch).strip()

    def _calls(self, name: str) -> list[str]:
        """Return the first places of HEAD that call a function, as `ops/add.py:12`."""
        lines = self._git("grep", "-nE", rf"\b{name}\(", "HEAD", "--", "*.py", ok=(0, 1)).splitlines()
        places = [":".join(line.split(":")[1:3]) for line in lines if f"def {name}(" not in line]
        return places[:CALLS]

    def _mentions(self, name: str, *, other_than: str) -> bool:
        """Return whether another file of HEAD has this word."""
        return any(
            line and line.partition(":")[2] != other_than
            for line in self._git("grep", "-lwF", "-e", name, "HEAD", ok=(0, 1)).splitlines()
        )

    @contextmanager
    def _original(self, folder: Path) -> Iterator[Path]:
        """A worktree of HEAD, removed at the end."""
        self._git("worktree", "add", "-q", "--detach", str(folder), "HEAD")
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self._git("worktree", "prune")

    @contextmanager
    def _worktree(self, branch: str, folder: Path) -> Iterator[None]:
        """A new branch in a new worktree; both are removed if the block fails."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._git("worktree", "add", "-q", "-b", branch, str(folder), "HEAD")
            yield
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                folder.parent.rmdir()
            self._git("worktree", "prune")
            if self._git("branch", "--list", branch):
                self._git("branch", "-q", "-D", branch)
            raise

    def _git(
        self,
        *arguments: str,
        folder: Path | None = None,
        standard_input: str | None = None,
        ok: Sequence[int] = (0,),
    ) -> str:
        environ = {name: value for name, value in os.environ.items() if name not in OF_CALLER}
        done = subprocess.run(
            ["git", "-C", str(folder or self._root), *arguments],
            input=None if standard_input is None else standard_input.encode(),
            stdin=subprocess.DEVNULL if standard_input is None else None,
            capture_output=True,
            env=environ,
            check=False,
        )
        if done.returncode not in ok:
            words = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
            raise NotApplicable(f"git {arguments[0]} fails in {self._root}: {words[-1]}")
        return done.stdout.decode("utf-8", "replace")

"""A kernel on a new branch of a repository, in a git worktree of its own. Nothing is pushed, and the person's files stay."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO

import msgspec

from harness.linux.foreign_files import remove
from sessions.errors import NotApplicable
from sessions.git_environment import SETTINGS, drop_git_variables
from suites.source.package import Package
from suites.task import Task

from .merging import changed_definition, uses
from .placing import HomeFile, merge_files, read_home, without_aliases

_FILE, _LINK = "100644", "120000"
"""Git's modes of a new file, and of a symbolic link."""
_TEMPLATES = tuple(f"{folder}pull_request_template.md" for folder in (".github/", "docs/", ""))
"""Paths of a pull request's template on GitHub, in lower case."""
CALLS = 3
"""Most calls of a function that a message names."""


def original_path(task: Task) -> str:
    """Return the path of the task's original file from the root of its repository; empty if the task does not say it."""
    return task.original or ("" if task.package is None else _path_in_repository(task.package.file))


def homes_on_disk(task: Task, original: str) -> list[HomeFile]:
    """Return the files that the task was made of, as they are now; of a task without further files, the original itself.

    Raises `NotApplicable` if a definition of the original changed, or if a file cannot be read.
    """
    if task.package is None or not task.package.kernels:
        return [HomeFile(original_path(task), original, task.package)]
    packages = [task.package, *_kernel_packages(task)]
    try:
        homes = [
            read_home(_path_in_repository(package.file), package.file.read_bytes(), package)
            for package in packages
        ]
    except OSError as error:
        raise NotApplicable(f"the package of {task.id} cannot be read: {error}") from error
    if encoded := [home.path for home in homes if home.encoding != "utf-8"]:
        raise NotApplicable(
            f"{encoded[0]} is not in plain UTF-8, as a patch is; `wavedeck apply` keeps its encoding"
        )
    check_same(task, original, homes)
    return homes


def _kernel_packages(task: Task) -> list[Package]:
    """Return the modules of the task's package that define kernels for its module."""
    if task.package is None:
        return []
    return [msgspec.structs.replace(task.package, module=module) for module in task.package.kernels]


def check_same(task: Task, original: str, homes: Sequence[HomeFile]) -> None:
    """Raise `NotApplicable` if the files no longer have the original's definitions."""
    paths = " or ".join(home.path for home in homes)
    texts = {home.path: home.text for home in homes}
    if changed := changed_definition(without_aliases(original, homes), texts):
        raise NotApplicable(
            f"`{changed}` in {paths} is not as in the original of {task.id}: the file changed since the task was made; "
            "make the task again from it"
        )


def _path_in_repository(file: Path) -> str:
    resolved = file.resolve()
    root = next((folder for folder in resolved.parents if (folder / ".git").exists()), None)
    return "" if root is None else resolved.relative_to(root).as_posix()


class PersonRepository:
    """A person's git repository."""

    def __init__(self, path: Path) -> None:
        """Raises `NotApplicable` if `path` is in no git repository, or if it has no commit."""
        try:
            self._root = path
            self._root = Path(self._git("rev-parse", "--show-toplevel").strip())
            self._base = self._git("rev-parse", "--verify", "HEAD^{commit}").strip()
        except (OSError, NotApplicable) as error:
            raise NotApplicable(
                f"{path} is not a git repository with a commit; name one with --to"
            ) from error

    def find_files(self, task: Task, original: str, file: str = "") -> list[HomeFile]:
        """Return the files that the task was made of; the first one has the entry point.

        `file` names the first one. Else it is the path that the task has, or the only file of HEAD with the original's text.
        Raises `NotApplicable` if there is none, if a file has changes that are not committed, or if a definition of the
        original changed.
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
        if self._files()[path] == _LINK:
            raise NotApplicable(
                f"{path} is a symbolic link to {self._text(path)}; name this file with --file"
            )
        packages = [(path, task.package)]
        packages += [(_path_in_repository(package.file), package) for package in _kernel_packages(task)]
        homes = [read_home(path, self._blob(path), package) for path, package in packages]
        if changes := self._git("status", "--porcelain", "-z", "--", *(path for path, _ in packages)):
            raise NotApplicable(
                f"{changes.partition(chr(0))[0][3:]} has changes that are not committed; commit or stash them"
            )
        check_same(task, original, homes)
        return homes

    def _blob(self, path: str) -> bytes:
        """Return the content of a file at HEAD, as git has it."""
        return self._git("cat-file", "blob", f"{self._base}:{path}").encode("utf-8", "surrogateescape")

    def _files(self) -> dict[str, str]:
        """Return the mode of each file of HEAD."""
        entries = self._git("ls-tree", "-r", "-z", "--full-tree", self._base).split("\0")
        return {path: facts.split(" ")[0] for facts, _, path in (entry.partition("\t") for entry in entries)}

    def _named(self, file: str) -> str:
        """Return the path from the root; a relative one may also begin at the current folder."""
        if file in self._files():
            return file
        absolute = Path(file).resolve()
        return absolute.relative_to(self._root).as_posix() if absolute.is_relative_to(self._root) else file

    def _with_text(self, text: str) -> str:
        """Return the only file of HEAD with this text; empty if there is none, or if several have it."""
        blob = self._git("hash-object", "--stdin", standard_input=text.encode()).strip()
        entries = (
            entry.partition("\t")
            for entry in self._git("ls-tree", "-r", "-z", "--full-tree", self._base).split("\0")
        )
        paths = [path for facts, _, path in entries if facts.endswith(blob)]
        return paths[0] if len(paths) == 1 else ""

    def read_if_there(self, path: str) -> str | None:
        """Return the text of a file at HEAD; `None` if it is not there. Raises `NotApplicable` if it has other changes."""
        if self._git("status", "--porcelain", "--", path):
            raise NotApplicable(f"{path} has changes that are not committed; commit or stash them")
        return self._text(path) if path in self._files() else None

    @property
    def pull_request_template(self) -> str:
        """The repository's own form of the text of a pull request; empty without one."""
        places = [path for path in self._files() if path.lower() in _TEMPLATES]
        return self._text(places[0]) if places else ""

    def _text(self, path: str) -> str:
        return self._blob(path).decode("utf-8", "replace")

    def merged(self, homes: Sequence[HomeFile], kernel: str, task: Task) -> dict[str, bytes]:
        """Return the contents of the files that the kernel changes, by path. Raises `NotApplicable`."""
        paths = [home.path for home in homes]
        texts = merge_files(
            homes,
            kernel,
            [entry.name for entry in task.entry_points],
            is_used_elsewhere=lambda name: bool(self._mentions(name, other_than=paths)),
            users=lambda name: self._users(name, other_than=paths),
        )
        if not texts:
            raise NotApplicable(f"{paths[0]} has this already")
        return {home.path: home.encoded(texts[home.path]) for home in homes if home.path in texts}

    def check_free(self, branch: str, folder: Path) -> None:
        """Raise `NotApplicable` if the branch or the folder of its worktree exists."""
        if self._git("branch", "--list", branch):
            raise NotApplicable(f"the branch {branch} exists already; delete it, or use it")
        if folder.exists():
            raise NotApplicable(
                f"{folder} exists already; remove it with: git worktree remove --force {folder}"
            )

    def apply(
        self,
        files: Mapping[str, bytes],
        *,
        branch: str,
        folder: Path,
        message: str,
        test: str = "",
        compare: Callable[[tuple[Path, Path]], None] | None = None,
    ) -> str:
        """Commit files with new contents to a new branch, in a new worktree `folder`; return the commit.

        `test` is a shell command that must end with 0 before and after the change. `compare` gets a worktree of the original
        commit, which is removed after it, and `folder` with the change. Neither has a part in the commit, which exists before
        they run. If anything fails or raises, neither branch nor folder is left. Raises `NotApplicable`.
        """
        if all(path in self._files() and data == self._blob(path) for path, data in files.items()):
            raise NotApplicable(f"{', '.join(files)} has this already")
        self.check_free(branch, folder)
        commit = self._commit(files, message)
        with self._worktree(branch, folder, commit):
            if test or compare is not None:
                with self._original(folder.with_name("original")) as original:
                    if left_out := [path for path in files if not (folder / path).is_file()]:
                        raise NotApplicable(
                            f"the sparse checkout has no {left_out[0]}, so a command cannot use it; leave the command out"
                        )
                    if test:
                        failure = f"{test!r} passes before the change and fails after it"
                        self._test(test, original, files, f"{test!r} fails before the change")
                        self._test(test, folder, files, failure)
                    if compare is not None:
                        compare((original, folder))
        return commit

    def _commit(self, files: Mapping[str, bytes], message: str) -> str:
        """Return a new commit of no branch: HEAD with new contents of files, which keep their modes.

        No hook, filter or signature has a part in it: the person signs and checks the commit later.
        """
        modes = self._files()
        with tempfile.TemporaryDirectory() as folder:
            git = partial(self._git, index=f"{folder}/index")
            git("read-tree", self._base)
            for path, data in files.items():
                blob = git("hash-object", "-w", "--stdin", standard_input=data).strip()
                git("update-index", "--add", "--cacheinfo", f"{modes.get(path, _FILE)},{blob},{path}")
            tree = git("write-tree").strip()
        return self._git(
            "commit-tree", tree, "-p", self._base, standard_input=f"{message.rstrip()}\n".encode()
        ).strip()

    def _test(self, command: str, folder: Path, paths: Iterable[str], failure: str) -> None:
        """Run a command in a worktree. Raises `NotApplicable` if it fails, or leaves another HEAD or other files."""

        def state() -> list[object]:
            files = [folder / path for path in paths]
            contents = [(file.stat().st_mode, file.read_bytes()) for file in files if file.is_file()]
            return [self._git("rev-parse", "HEAD", folder=folder), contents]

        before = state()
        run_program(["/bin/sh", "-c", command], folder, failure)
        if state() != before:
            raise NotApplicable(
                f"{command!r} moves HEAD or changes {', '.join(paths)} in its worktree, so it tests another kernel than this "
                "one; nothing is left behind"
            )

    def _mentions(self, name: str, *, other_than: Sequence[str]) -> list[str]:
        """Return the other files of HEAD that have this word."""
        lines = self._git("grep", "--no-color", "-lwF", "-e", name, self._base, ok=(0, 1)).splitlines()
        return [path for line in lines if (path := line.partition(":")[2]) not in other_than]

    def _users(self, name: str, *, other_than: Sequence[str]) -> list[str]:
        """Return the other Python files of HEAD that use a name. An import alone is no use."""
        users = []
        for path in self._mentions(name, other_than=other_than):
            with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                if path.endswith(".py") and uses(self._text(path), name):
                    users.append(path)
        return users

    def _calls(self, name: str) -> list[str]:
        """Return the first places of HEAD that call a function, as `ops/add.py:12`."""
        lines = self._git("grep", "--no-color", "-nE", rf"\b{name}\(", self._base, ok=(0, 1)).splitlines()
        places = [
            ":".join(line.split(":")[1:3]) for line in lines if f"def {name}(" not in line and ".py:" in line
        ]
        return places[:CALLS]

    @contextmanager
    def _original(self, folder: Path) -> Iterator[Path]:
        """A worktree of HEAD, removed at the end."""
        self._git("worktree", "add", "-q", "--detach", str(folder), self._base)
        try:
            yield folder
        finally:
            remove(folder)
            self._git("worktree", "prune")

    @contextmanager
    def _worktree(self, branch: str, folder: Path, commit: str) -> Iterator[None]:
        """A new branch of a commit in a new worktree; both are removed if the block fails."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._git("worktree", "add", "-q", "-b", branch, str(folder), commit)
            yield
        except BaseException:
            remove(folder)
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
        standard_input: bytes = b"",
        index: str = "",
        ok: Sequence[int] = (0,),
    ) -> str:
        """Run git without hooks; return its output, with `index` as its index. Bytes that are not UTF-8 become surrogates."""
        drop_git_variables()
        settings = [word for setting in (*SETTINGS, "i18n.commitEncoding=utf-8") for word in ("-c", setting)]
        done = subprocess.run(
            [
                "git",
                "--no-optional-locks",
                "--literal-pathspecs",
                *settings,
                "-C",
                str(folder or self._root),
                *arguments,
            ],
            input=standard_input,
            capture_output=True,
            env=os.environ | ({"GIT_INDEX_FILE": index} if index else {}),
            check=False,
        )
        if done.returncode not in ok:
            words = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
            raise NotApplicable(f"git {arguments[0]} fails in {self._root}: {words[-1]}")
        return done.stdout.decode("utf-8", "surrogateescape")


LIMIT_S = 3600.0
KEPT_BYTES = 1 << 16
"""The end of each output that is kept."""
READING_S = 2.0
"""Time to read the last output; a process outside of the command's group may hold the pipe for longer."""
SHOWN_LINES, SHOWN_CHARACTERS = 5, 300


def run_program(
    words: Sequence[str], folder: Path, failure: str, environment: Mapping[str, str] | None = None
) -> str:
    """Run a program, with these further variables, and return the end of its standard output.

    Processes that it left behind in its group are ended with it. Raises `NotApplicable` with the end of its output if it fails
    or takes longer than `LIMIT_S`.
    """
    drop_git_variables()
    process: subprocess.Popen[bytes] | None = None
    ends = [bytearray(), bytearray()]
    readers: list[threading.Thread] = []
    ending = f"it runs for more than {LIMIT_S:.0f} s"
    try:
        with _interrupt_held_back():  # its pipes have readers, which close them, before it is raised
            process = subprocess.Popen(
                words,
                cwd=folder,
                env=os.environ | (environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            for pipe, end in zip((process.stdout, process.stderr), ends, strict=True):
                readers.append(threading.Thread(target=_keep_end, args=(pipe, end), daemon=True))
                readers[-1].start()
        with suppress(subprocess.TimeoutExpired):
            ending = f"exit code {process.wait(LIMIT_S)}"
    except OSError as error:
        raise NotApplicable(
            f"{failure}: it cannot be started ({error.strerror}); nothing is left behind"
        ) from error
    finally:
        if process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    for reader in readers:
        reader.join(READING_S)
    output, errors = (end.decode("utf-8", "replace") for end in ends)
    if ending != "exit code 0":
        lines = [line[:SHOWN_CHARACTERS] for line in f"{output}\n{errors}".splitlines() if line.strip()]
        shown = f", it prints: {' | '.join(lines[-SHOWN_LINES:])}" if lines else ""
        raise NotApplicable(f"{failure} ({ending}); nothing is left behind{shown}")
    return output


@contextmanager
def _interrupt_held_back() -> Iterator[None]:
    """Raise an interrupt of the block at its end, so that a program that it starts is known to the code that ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # interrupts arrive in the main thread alone
        return
    interrupts: list[int] = []
    earlier = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, earlier)
    if interrupts:
        raise KeyboardInterrupt


def _keep_end(pipe: IO[bytes], end: bytearray) -> None:
    with pipe:
        while piece := os.read(pipe.fileno(), KEPT_BYTES):
            end += piece
            del end[:-KEPT_BYTES]

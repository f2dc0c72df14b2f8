"""Errors of suites and tasks.

SuiteError
|- UnknownSuite   no suite of this name
|- UnknownTask    no task of this name
|- UnknownCase    the task has no open case of this name
|- BadCapture     calls of a person's program cannot be recorded, or the file of a capture cannot be read
|- BadSuite       a registered suite, or the file that registers them, cannot be used
|- BadTask        a task folder breaks the format
`- BadKernelFile  a person's kernel file cannot become a task
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path


class SuiteError(Exception):
    """Base class. Each message is one line with the problem and the next step."""


class UnknownSuite(SuiteError):
    """No suite of this name is built in or added."""

    def __init__(self, name: str, *, known: Iterable[str]) -> None:
        super().__init__(
            f"no suite is called {name!r}{nearest(name, known)}; "
            "`wavedeck suites list` shows them, `wavedeck suites add NAME PATH` adds one"
        )
        self.name = name


class UnknownTask(SuiteError):
    """No task of this name is in the suite that the name points to."""

    def __init__(self, name: str, *, known: Iterable[str]) -> None:
        super().__init__(
            f"no task is called {name!r}{nearest(name, known)}; `wavedeck suites list` shows them"
        )
        self.name = name


class UnknownCase(SuiteError):
    """The task has no open case of this name."""

    def __init__(self, name: str, *, task: str, cases: Iterable[str]) -> None:
        names = list(cases)
        super().__init__(
            f"{task} has no open case {name!r}{nearest(name, names)}; its open cases: {', '.join(names)}"
        )
        self.name = name


class BadSuite(SuiteError):
    """A suite that cannot be used: its folder, its name, or the file that registers it."""


class BadCapture(SuiteError):
    """Calls of a person's program cannot be recorded, or the file of a capture cannot be read."""


class BadTask(SuiteError):
    """A task folder breaks the format: which file, which key in it, and what is wrong."""

    def __init__(self, file: Path, key: str, problem: str) -> None:
        where = f"{file}: `{key}`" if key else f"{file}"
        super().__init__(f"{where}: {problem}")
        self.file, self.key, self.problem = file, key, problem


class BadKernelFile(SuiteError):
    """A file cannot become a task: its entry point, its reference or its inputs."""


def nearest(name: str, names: Iterable[str]) -> str:
    """Return ` (did you mean ...?)` with the most similar name; empty if no name is similar."""
    close = get_close_matches(name, list(names), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""

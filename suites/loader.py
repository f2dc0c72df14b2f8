"""Load tasks and suites by name."""

from __future__ import annotations

from pathlib import Path

from suites.errors import BadTask, UnknownTask
from suites.folder import read_task
from suites.registry import suite_folder, suite_folders, task_names
from suites.task import Task

DEFAULT_SUITE = "starter"


def suite_names(*, registry: Path | None = None) -> tuple[str, ...]:
    """Return the names of all suites: built-in suites, then the suites in `registry` (a `suites.toml`), in its order."""
    return tuple(suite_folders(registry))


def load_suite(name: str, *, registry: Path | None = None) -> tuple[Task, ...]:
    """Return all tasks of a suite, easiest first. Raises `SuiteError` at the first broken task."""
    folder = suite_folder(name, registry)
    tasks = [read_task(folder / task, suite=name) for task in task_names(folder)]
    return tuple(sorted(tasks, key=lambda task: (task.difficulty, task.name)))


def load_task(name: str, *, registry: Path | None = None) -> Task:
    """Return the task `suite/task`; `task` alone means `starter/task`. Raises `SuiteError` if it is missing or broken."""
    suite, separator, short = name.partition("/")
    if not separator:
        suite, short = DEFAULT_SUITE, name
    folders = suite_folders(registry)
    folder = suite_folder(suite, registry) if suite in folders else None
    if folder is None or short not in task_names(folder):
        raise UnknownTask(name, known=_all_names(folders))
    return read_task(folder / short, suite=suite)


def baseline_source(task: Task) -> str:
    """Return the source text of the task's timing baseline."""
    file = task.folder / "baseline.py"
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadTask(file, "", f"cannot be read: {error}") from error


def _all_names(folders: dict[str, Path]) -> list[str]:
    """Return every name of every task: `suite/task`, and the short names of `starter`."""
    names = [f"{suite}/{task}" for suite, folder in folders.items() for task in task_names(folder)]
    return [*task_names(folders[DEFAULT_SUITE]), *names]

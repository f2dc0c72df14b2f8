"""Load tasks and suites by name."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from suites.errors import BadSuite, BadTask, UnknownSuite, UnknownTask
from suites.folder import TASK_FILE, read_task
from suites.public.recorded import NeedsRecording, load_recorded, recorded_folder
from suites.public.task import PublicTask
from suites.registry import OWN, clones_of, suite_folder, suite_folders, task_names
from suites.task import Task

if TYPE_CHECKING:
    from suites.public.loader import PublicSuite

DEFAULT_SUITE = "starter"


def suite_names(*, registry: Path | None = None) -> tuple[str, ...]:
    """Return the names of all suites of task folders: built-in suites, then those in `registry` (a `suites.toml`)."""
    return tuple(suite_folders(registry))


def public_suite_names(*, registry: Path | None = None) -> tuple[str, ...]:
    """Return the names of all clones of public benchmarks in `registry`."""
    return tuple(clone.name for clone in clones_of(registry))


def load_public_suite(name: str, *, registry: Path | None = None) -> PublicSuite:
    """Return the tasks of a clone of a public benchmark, and what is wrong with the clone. Raises `SuiteError`."""
    from suites.public.loader import load_clone  # every command loads this module, few read a clone

    clones = clones_of(registry)
    for clone in clones:
        if clone.name == name:
            return load_clone(clone, clones)
    raise UnknownSuite(name, known=[clone.name for clone in clones])


def load_public_task(name: str, *, registry: Path | None = None) -> PublicTask:
    """Return the task `suite/task` of a public benchmark; the suite's own name of the task is accepted too.

    Loads the whole suite. Raises `SuiteError`: `UnknownSuite`, `UnknownTask`, or an error of the clone.
    """
    suite = name.partition("/")[0]
    return find_public_task(name, load_public_suite(suite, registry=registry).tasks)


def find_public_task(name: str, tasks: Sequence[PublicTask]) -> PublicTask:
    """Return the task `suite/task` among the tasks of its suite. Raises `UnknownTask`."""
    short = name.partition("/")[2]
    for task in tasks:
        if short in (task.name, task.file, task.file.removesuffix(".py")):
            return task
    raise UnknownTask(name, known=[task.id for task in tasks])


def load_suite(name: str, *, registry: Path | None = None) -> tuple[Task, ...]:
    """Return all tasks of a suite, easiest first; of a clone, the tasks that were recorded.

    Raises `SuiteError` at the first broken task, and if no task of a clone was recorded. Of the suite `OWN`, tasks without
    their package are left out.
    """
    if registry is not None and name in public_suite_names(registry=registry):
        folder = recorded_folder(registry, name)
        if not task_names(folder):
            raise NeedsRecording(name)
    else:
        folder = suite_folder(name, registry)
    tasks = []
    for task in task_names(folder):
        with suppress(BadTask) if name == OWN else nullcontext():
            tasks.append(read_task(folder / task, suite=name))
    return tuple(sorted(tasks, key=lambda task: (task.difficulty, task.name)))


def load_task(name: str, *, registry: Path | None = None) -> Task:
    """Return the task `suite/task`; `task` alone means `starter/task`. Raises `SuiteError` if it is missing or broken."""
    suite, separator, short = name.partition("/")
    if not separator:
        suite, short = DEFAULT_SUITE, name
    folders = suite_folders(registry)
    if registry is not None and suite in public_suite_names(registry=registry):
        return load_recorded(suite, short, registry)
    folder = suite_folder(suite, registry) if suite in folders else None
    if folder is None or short not in task_names(folder):
        raise UnknownTask(name, known=_all_names(folders))
    return read_task(folder / short, suite=suite)


def find_task(text: str, *, registry: Path | None = None) -> Task:
    """Return the task in the folder that a person names, else the task of this name. Raises as `load_task`.

    The task in a folder gets the name of the suite that was added for the folder around it, else that folder's name.
    """
    folder = Path(text)
    if not (folder / TASK_FILE).is_file():
        return load_task(text, registry=registry)
    return read_task(folder, suite=_suite_around(folder, registry) or folder.resolve().parent.name)


def find_name(text: str, *, registry: Path | None = None) -> str:
    """Return the name by which sessions find a task later, if a person names its folder; any other text as it is.

    Raises `BadSuite` if no suite has the folder.
    """
    folder = Path(text)
    if not (folder / TASK_FILE).is_file():
        return text
    if not (suite := _suite_around(folder, registry)):
        raise BadSuite(
            f"the folder {text} is in no suite, and a session needs a name for its task; "
            f"give the suite one: wavedeck suites add NAME {shlex.quote(str(folder.resolve().parent))}"
        )
    return f"{suite}/{folder.resolve().name}"


def _suite_around(folder: Path, registry: Path | None) -> str:
    """Return the name of the suite that has a task folder; empty if none has it."""
    around = folder.resolve().parent
    return next((name for name, path in suite_folders(registry).items() if path.resolve() == around), "")


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

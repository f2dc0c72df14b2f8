"""Category and difficulty of tasks, and the sizes of their suites."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from suites import SuiteError, load_public_suite, load_task, public_suite_names
from suites.registry import suite_folder, task_names


class TaskKind(msgspec.Struct, frozen=True):
    """The group of a task in tables."""

    category: str = ""
    """Empty if unknown."""
    difficulty: int | None = None
    of_suite: int = 0
    """Tasks of its suite; 0 if unknown."""


def task_kinds(tasks: Iterable[str], registry: Path | None) -> dict[str, TaskKind]:
    """Returns what its suite says of each task, by full task name; a task that its suite does not have is not in the result.

    Tasks of a public benchmark have the values of its clone, because a recorded task has a value even if the clone has none.
    """
    wanted, kinds = set(tasks), dict[str, TaskKind]()
    public = set(public_suite_names(registry=registry)) if registry is not None else set[str]()
    for suite in sorted({task.partition("/")[0] for task in wanted} & public):
        with suppress(SuiteError):
            loaded = load_public_suite(suite, registry=registry).tasks
            kinds |= {
                task.id: TaskKind(task.category, task.difficulty, len(loaded))
                for task in loaded
                if task.id in wanted
            }
    sizes: dict[str, int] = {}
    for name in sorted(wanted):
        suite = name.partition("/")[0]
        if suite not in public:
            with suppress(SuiteError):
                task = load_task(name, registry=registry)
                if suite not in sizes:
                    sizes[suite] = len(task_names(suite_folder(suite, registry)))
                kinds[name] = TaskKind(task.category, task.difficulty, sizes[suite])
    return kinds

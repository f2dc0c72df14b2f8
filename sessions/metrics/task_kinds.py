"""Category and difficulty of tasks, from their suites."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from suites import SuiteError, load_public_suite, load_task, public_suite_names


class TaskKind(msgspec.Struct, frozen=True):
    """The group of a task in tables."""

    category: str = ""
    """Empty if unknown."""
    difficulty: int | None = None


def task_kinds(tasks: Iterable[str], registry: Path | None) -> dict[str, TaskKind]:
    """Returns category and difficulty by full task name; a task that its suite does not have is not in the result.

    Tasks of a public benchmark have the values of its clone, because a recorded task has a value even if the clone has none.
    """
    wanted, kinds = set(tasks), dict[str, TaskKind]()
    public = set(public_suite_names(registry=registry)) if registry is not None else set[str]()
    for suite in sorted({task.partition("/")[0] for task in wanted} & public):
        with suppress(SuiteError):
            loaded = load_public_suite(suite, registry=registry).tasks
            kinds.update(
                {task.id: TaskKind(task.category, task.difficulty) for task in loaded if task.id in wanted}
            )
    for name in sorted(wanted):
        if name.partition("/")[0] not in public:
            with suppress(SuiteError):
                task = load_task(name, registry=registry)
                kinds[name] = TaskKind(task.category, task.difficulty)
    return kinds

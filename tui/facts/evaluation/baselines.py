"""The source of a session's timing baselines."""

from __future__ import annotations

from typing import NamedTuple

from sessions.settings import RunSettings
from suites import Task, baseline_source

OF_TORCH = ("eager", "compile")
"""Timing baselines that torch makes from the task's reference: there is no kernel to compare with."""


class BaselineSource(NamedTuple):
    """The source of a timing baseline."""

    name: str
    """`baseline triton`."""
    source: str


def baseline_of(started: RunSettings, task: Task | None) -> BaselineSource | None:
    """Return what the speedups of a task are against; `None` if it has no source. `task` is `None` if it is not on this machine.

    Raises `SuiteError` if the file of the task's baseline cannot be read.
    """
    if started.against_source:
        return BaselineSource(f"baseline {started.against}", started.against_source)
    if task is None or started.against in OF_TORCH:
        return None
    return BaselineSource(f"baseline {task.baseline}", baseline_source(task))

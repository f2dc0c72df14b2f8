"""The kernels of a session's winners for a reader, with their changes from the timing baseline."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sessions.settings import RunSettings
from suites import SuiteError, Task
from tui.facts.evaluation.baselines import BaselineSource, baseline_of
from tui.facts.text_diff import unified_lines

from .model import SessionReport


class WinnerKernel(NamedTuple):
    """The source of a winner."""

    session: str
    attempt: str
    figure: str
    """Its speedup with interval; empty if it was not timed."""
    source: str
    baseline: str
    """Name of the code that the diff is against; empty if that code is not known."""
    diff: str
    """Unified diff from the baseline; empty without one."""


def winner_kernels(report: SessionReport, find_task: Callable[[str], Task | None]) -> list[WinnerKernel]:
    """Return the kernels of a session's winners, the fastest first. `find_task` gives a task by its full name."""
    started = report.state.started
    kernels = []
    for winner in report.winners:
        if started is None or not winner.best.source:
            continue
        figure = winner.speed.words if winner.speed is not None else ""
        baseline = _baseline(started, find_task(winner.task))
        diff = "" if baseline is None else _diff(baseline, winner.attempt, winner.best.source)
        name = "" if baseline is None else baseline.name
        kernels.append(WinnerKernel(report.session, winner.attempt, figure, winner.best.source, name, diff))
    return kernels


def _baseline(started: RunSettings, task: Task | None) -> BaselineSource | None:
    try:
        return baseline_of(started, task)
    except SuiteError:
        return None


def _diff(baseline: BaselineSource, attempt: str, source: str) -> str:
    before, after = baseline.source.splitlines(), source.splitlines()
    lines = unified_lines(before, after, baseline.name, attempt)
    return "\n".join(lines)

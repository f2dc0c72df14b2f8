"""Sources that an attempt is compared with: its base, the baseline, the best, or an attempt that a person chose."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from sessions.settings import RunSettings
from sessions.state.state import AttemptState, InstanceState, SessionState
from sessions.state.winners import earlier_best
from suites import SuiteError, Task, baseline_source, load_task
from tui.cockpit.data import attempts

OF_TORCH = ("eager", "compile")
"""Timing baselines that torch makes from the task's reference: there is no kernel to compare with."""

KERNEL_MARK = "@triton.jit"
"""In each Triton kernel; a baseline without it is PyTorch code."""


@dataclass(frozen=True, slots=True)
class Side:
    """One source of a diff."""

    name: str
    """`#2/7`, `base softmax#3/5`, or `baseline triton`."""
    source: str
    commit: str | None = None


class ComparedTo(StrEnum):
    """Contents of the code pane; `d` goes from one to the next."""

    CODE = "code"
    BASE = "base"
    BASELINE = "baseline"
    BEST = "best"
    OTHER = "other"
    """An attempt that a person chose with `<` or `>`."""


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """Facts from the task's folder on this machine; empty if the task is not here."""

    baseline: Side | None = None
    shapes: dict[str, str] = field(default_factory=dict)
    """Sizes on a GPU by case: `8192x4097`."""


def read_task_files(started: RunSettings | None, task: str, registry: Path | None = None) -> TaskFiles:
    """Return the timing baseline's source and the shapes of a task. Reads files.

    `registry` names the suites that people added.
    """
    if started is None:
        return TaskFiles()
    try:
        loaded = load_task(task, registry=registry)
        shapes = {case.name: "x".join(map(str, case.gpu.values())) for case in loaded.cases}
        return TaskFiles(_baseline(started, loaded), shapes)
    except (SuiteError, OSError):
        return TaskFiles(_given_baseline(started))


def _baseline(started: RunSettings, task: Task) -> Side | None:
    if started.against in OF_TORCH:
        return None
    return _given_baseline(started) or Side(f"baseline {task.baseline}", baseline_source(task))


def _given_baseline(started: RunSettings) -> Side | None:
    """The kernel file that the session was started with; the session keeps its source."""
    return Side(f"baseline {started.against}", started.against_source) if started.against_source else None


def side_of(attempt: AttemptState | None) -> Side | None:
    """Return an attempt as a side of a diff; `None` without code."""
    if attempt is None or not attempt.source:
        return None
    return Side(attempts.short_name(attempt.attempt), attempt.source, attempt.commit)


def other_sides(
    state: SessionState,
    instance: InstanceState,
    attempt: AttemptState,
    baseline: Side | None,
    chosen: int | None,
) -> dict[ComparedTo, Side]:
    """Return what an attempt can be compared with, each source once, in the order of `d`.

    `chosen` is the number of the attempt that a person chose. Without a base, the attempt before counts as the base.
    """
    before = [earlier for earlier in instance.attempts if earlier.number < attempt.number]
    base = attempts.base_of(state, attempt) or (before[-1] if before else None)
    sides = {
        ComparedTo.BASE: side_of(base),
        ComparedTo.BASELINE: baseline,
        ComparedTo.BEST: side_of(attempts.best_of(instance)),
    }
    kept: dict[ComparedTo, Side] = {}
    for comparison, side in sides.items():
        names = [attempts.short_name(attempt.attempt), *(earlier.name for earlier in kept.values())]
        if side is not None and side.name not in names:
            kept[comparison] = side
    picked = side_of(attempts.numbered(instance, chosen)) if chosen is not None else None
    if picked is not None:
        kept[ComparedTo.OTHER] = picked
    return kept


def review_sides(
    state: SessionState, attempt: AttemptState, instance: InstanceState, baseline: str, baseline_name: str
) -> list[Side]:
    """Return what Review compares an attempt with: baseline, base, and the best before it, each attempt once.

    `baseline` is the source of the baseline; empty if it is not known. A baseline in PyTorch comes last.
    """
    base, best = attempts.base_of(state, attempt), earlier_best(attempt, instance)
    earlier = {"base": base, "best before": best if best is not base else None}
    sides = [
        Side(f"{word} {other.attempt}", other.source, other.commit)
        for word, other in earlier.items()
        if other is not None and other.source
    ]
    if baseline:
        place = 0 if KERNEL_MARK in baseline else len(sides)
        sides.insert(place, Side(f"baseline {baseline_name}".rstrip(), baseline))
    return sides


def following(current: ComparedTo, sides: dict[ComparedTo, Side]) -> ComparedTo:
    """Return what `d` shows after `current`: the next side that exists, and the code after the last."""
    order = [ComparedTo.CODE, *(side for side in sides if side is not ComparedTo.OTHER)]
    return order[(order.index(current) + 1) % len(order)] if current in order else ComparedTo.CODE


def neighbour(instance: InstanceState, attempt: AttemptState, current: str, direction: int) -> int | None:
    """Return the number of the attempt with code after (or before) the other side named `current`; `None` if none."""
    numbers = [sibling.number for sibling in instance.attempts if sibling.source and sibling is not attempt]
    here = next(
        (sibling.number for sibling in instance.attempts if attempts.short_name(sibling.attempt) == current),
        attempt.number,
    )
    later = [number for number in numbers if (number - here) * direction > 0]
    return min(later, key=lambda number: abs(number - here), default=None)

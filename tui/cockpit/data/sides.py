"""Sources that an attempt is compared with: its base, the baseline, the best, or an attempt that a person chose."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from sessions.settings import RunSettings
from sessions.state.state import AttemptState, InstanceState, SessionState
from sessions.state.winners import earlier_best
from suites import SuiteError, load_task
from tui.cockpit.data import attempts
from tui.facts.evaluation.baselines import baseline_of


@dataclass(frozen=True, slots=True)
class Side:
    """One source of a diff."""

    name: str
    """`#2/7`, `base #3/5`, or `baseline triton`."""
    source: str
    commit: str | None = None
    attempt: str = ""
    """Whole name of the attempt; empty for a baseline."""


class ComparedTo(StrEnum):
    """Contents of the code pane; `d` goes from one to the next."""

    CODE = "code"
    BASE = "base"
    BASELINE = "baseline"
    BEST = "best"
    OTHER = "other"
    """An attempt that a person chose with `<` or `>`."""


def read_baseline(started: RunSettings, task: str, registry: Path | None = None) -> Side | None:
    """Return the timing baseline of a task; `None` if it has no source, or none on this machine. Reads files.

    `registry` names the suites that people added.
    """
    try:
        baseline = baseline_of(started, load_task(task, registry=registry))
    except (SuiteError, OSError):
        baseline = baseline_of(started, None)
    return None if baseline is None else Side(baseline.name, baseline.source)


def side_of(attempt: AttemptState, word: str = "") -> Side:
    """Return an attempt with code as a side of a diff: `base #3/5`."""
    name = f"{word} {attempts.short_name(attempt.attempt)}".lstrip()
    return Side(name, attempt.source or "", attempt.commit, attempt.attempt)


def other_sides(
    state: SessionState,
    instance: InstanceState,
    attempt: AttemptState,
    baseline: Side | None,
    chosen: int | None,
) -> dict[ComparedTo, Side]:
    """Return what an attempt can be compared with, each source once, in the order of `d`.

    Without a base, the attempt before counts as the base; the best before it, if it is the best itself. `chosen` is the
    number of the attempt that a person chose.
    """
    before = [earlier for earlier in instance.attempts if earlier.number < attempt.number]
    base = attempts.base_of(state, attempt) or (before[-1] if before else None)
    best = instance.best_correct
    if best is attempt:
        best = earlier_best(attempt, instance)
    sides = {ComparedTo.BASE: side_of(base, "base")} if base is not None and base.source else {}
    if baseline is not None:
        sides[ComparedTo.BASELINE] = baseline
    if best is not None and best is not base and best.source:
        sides[ComparedTo.BEST] = side_of(best, "best")
    picked = attempts.numbered(instance, chosen)
    if picked is not None and picked is not attempt and picked.source:
        sides[ComparedTo.OTHER] = side_of(picked)
    return sides


def following(current: ComparedTo, sides: dict[ComparedTo, Side]) -> ComparedTo:
    """Return what `d` shows after `current`: the next side that exists, and the code after the last."""
    order = [ComparedTo.CODE, *(side for side in sides if side is not ComparedTo.OTHER)]
    return order[(order.index(current) + 1) % len(order)] if current in order else ComparedTo.CODE


def base_first(sides: dict[ComparedTo, Side]) -> ComparedTo:
    """Return what a reviewer sees first: the diff to the base, as the figures; without a base, to the baseline."""
    return next(iter(sides), ComparedTo.CODE)


def neighbour(instance: InstanceState, attempt: AttemptState, current: str, direction: int) -> int | None:
    """Return the number of the attempt with code after (or before) attempt `current`; `None` if none."""
    names = [sibling.attempt for sibling in instance.attempts]
    place = names.index(current if current in names else attempt.attempt)
    later = instance.attempts[place + 1 :] if direction > 0 else instance.attempts[:place][::-1]
    return next((sibling.number for sibling in later if sibling.source and sibling is not attempt), None)

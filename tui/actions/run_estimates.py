"""Estimates of a run from past sessions of the same task, model and method. Pure; nothing is invented."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sessions.names import short_task

if TYPE_CHECKING:
    from engine.plan.plan import SessionPlan
    from sessions.catalog import SessionInfo


@dataclass(frozen=True, slots=True)
class Spread:
    """An estimate with the range of the sessions behind it."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The estimates of a run if it makes all its attempts; `None` where no past session says."""

    attempts: int
    """Attempts at most."""
    sessions: int = 0
    """Number of past sessions behind the estimates."""
    unknown: tuple[str, ...] = ()
    """Tasks without a past session."""
    calls: Spread | None = None
    input_tokens: Spread | None = None
    output_tokens: Spread | None = None
    cost_usd: Spread | None = None
    wall_s: Spread | None = None
    """At the pace of the past sessions."""


def estimate(plan: SessionPlan, infos: Sequence[SessionInfo]) -> RunEstimate:
    """Return the estimates of a plan.

    Each task has the figures per attempt of the sessions with this task, the plan's model and its method. The estimate is
    the sum of the medians over tasks, for all attempts of the plan; its range is the sum of the lowest and of the highest.
    """
    a_task = plan.instances * plan.iterations
    attempts = a_task * len(plan.tasks)
    if plan.budget_attempts is not None:
        attempts = min(attempts, plan.budget_attempts)
    by_task = {task: [info for info in infos if _fits(plan, info, task)] for task in plan.tasks}
    unknown = tuple(short_task(task) for task, past in by_task.items() if not past)
    sessions = len({info.name for past in by_task.values() for info in past})
    if unknown:
        return RunEstimate(attempts, sessions, unknown)
    share = attempts / (a_task * len(plan.tasks))

    def spread(figure: Callable[[SessionInfo], float | None]) -> Spread | None:
        ends = [0.0, 0.0, 0.0]
        for past in by_task.values():
            rates = [value / info.attempts for info in past if (value := figure(info)) is not None]
            if not rates:
                return None
            for place, rate in enumerate((statistics.median(rates), min(rates), max(rates))):
                ends[place] += rate * a_task * share
        return Spread(*ends)

    return RunEstimate(
        attempts,
        sessions,
        (),
        calls=spread(lambda info: info.calls),
        input_tokens=spread(lambda info: info.input_tokens or None),
        output_tokens=spread(lambda info: info.output_tokens or None),
        cost_usd=spread(lambda info: None if info.unpriced_calls else info.cost_usd),
        wall_s=spread(lambda info: info.worked_s),
    )


def _fits(plan: SessionPlan, info: SessionInfo, task: str) -> bool:
    same = (info.settings.model, info.settings.method) == (plan.model, plan.method)
    return same and task in info.settings.tasks and info.attempts > 0 and info.state.value != "running"

"""Estimates of a run from past sessions of the same task, model and method. Pure; nothing is invented."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sessions.events import Usage
from sessions.names import short_task

if TYPE_CHECKING:
    from engine.plan.plan import SessionPlan
    from sessions.catalog import SessionInfo


@dataclass(frozen=True, slots=True)
class EstimatedRange:
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
    calls: EstimatedRange | None = None
    input_tokens: EstimatedRange | None = None
    output_tokens: EstimatedRange | None = None
    cost_usd: EstimatedRange | None = None
    wall_s: EstimatedRange | None = None
    """At the pace of the past sessions."""


def estimate(plan: SessionPlan, infos: Sequence[SessionInfo]) -> RunEstimate:
    """Return the estimates of a plan.

    Each task has the figures per attempt of the sessions with this task, the plan's model and its method. The estimate is
    the sum of the medians over tasks, for all attempts of the plan; its range is the sum of the lowest and of the highest.
    """
    a_task = plan.instances * plan.iterations
    attempts = a_task * len(plan.tasks)
    by_task = {task: [info for info in infos if _fits(plan, info, task)] for task in plan.tasks}
    unknown = tuple(short_task(task) for task, past in by_task.items() if not past)
    sessions = len({info.name for past in by_task.values() for info in past})
    if unknown:
        return RunEstimate(attempts, sessions, unknown)
    share = attempts / (a_task * len(plan.tasks))

    def range_of(figure: Callable[[SessionInfo], float | None]) -> EstimatedRange | None:
        ends = [0.0, 0.0, 0.0]
        for past in by_task.values():
            rates = [value / info.attempts for info in past if (value := figure(info)) is not None]
            if not rates:
                return None
            for place, rate in enumerate((statistics.median(rates), min(rates), max(rates))):
                ends[place] += rate * a_task * share
        return EstimatedRange(*ends)

    return RunEstimate(
        attempts,
        sessions,
        (),
        calls=range_of(lambda info: info.calls),
        input_tokens=range_of(lambda info: info.input_tokens or None),
        output_tokens=range_of(lambda info: info.output_tokens or None),
        cost_usd=range_of(lambda info: None if info.unpriced_calls else info.cost_usd),
        wall_s=range_of(lambda info: info.worked_s),
    )


@dataclass(frozen=True, slots=True)
class CellEstimate:
    """The estimates of a cell of a study, if it makes all attempts that are left; `None`: unknown."""

    attempts: int
    cost_usd: EstimatedRange | None
    wall_s: EstimatedRange | None
    sessions: frozenset[str]
    """The past sessions behind the estimates."""
    is_foreign: bool
    """True if the cost is that of the tokens of other models with the same method."""


def estimate_cell(plan: SessionPlan, made: int, infos: Sequence[SessionInfo]) -> CellEstimate:
    """Return the estimates of a cell of which `made` attempts exist.

    It has the figures per attempt of the past sessions with its model and method, those with one of its tasks if there are
    any. If there is no such session, its cost is that of the tokens of other models with its method, at its own price.
    """
    attempts = max(0, plan.instances * plan.iterations * len(plan.tasks) - made)
    alike = [
        info
        for info in infos
        if info.settings.method == plan.method and info.attempts > 0 and info.state.value != "running"
    ]
    same = [info for info in alike if info.settings.model == plan.model]
    past = [info for info in same if set(info.settings.tasks) & set(plan.tasks)] or same

    def range_of(
        infos: Sequence[SessionInfo], figure: Callable[[SessionInfo], float | None]
    ) -> EstimatedRange | None:
        rates = [value / info.attempts * attempts for info in infos if (value := figure(info)) is not None]
        return EstimatedRange(statistics.median(rates), min(rates), max(rates)) if rates else None

    def at_own_price(info: SessionInfo) -> float | None:
        price = plan.prices.get(plan.model)
        usage = Usage(info.input_tokens, info.output_tokens)
        return price.cost(usage) if price is not None and info.input_tokens else None

    cost = range_of(past, lambda info: None if info.unpriced_calls else info.cost_usd)
    if plan.model == "none" or plan.model.startswith("recorded:"):
        cost = EstimatedRange(0.0, 0.0, 0.0)
    is_foreign = not past and cost is None
    if is_foreign:
        cost = range_of(alike, at_own_price)
    behind = alike if is_foreign and cost is not None else past
    return CellEstimate(
        attempts,
        cost,
        range_of(past, lambda info: info.worked_s),
        frozenset(info.name for info in behind),
        is_foreign and cost is not None,
    )


def total(ranges: Sequence[EstimatedRange | None]) -> EstimatedRange | None:
    """Return the sum of the known estimates; `None` if none is known."""
    estimates = [estimate for estimate in ranges if estimate is not None]
    ends = (sum(getattr(estimate, end) for estimate in estimates) for end in ("median", "low", "high"))
    return EstimatedRange(*ends) if estimates else None


def _fits(plan: SessionPlan, info: SessionInfo, task: str) -> bool:
    same = (info.settings.model, info.settings.method) == (plan.model, plan.method)
    return same and task in info.settings.tasks and info.attempts > 0 and info.state.value != "running"

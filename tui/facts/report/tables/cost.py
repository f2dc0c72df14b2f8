"""The table of what tasks and solved tasks cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.cost import SolvedTaskCost, solved_task_cost
from tui.facts.report.section import Section, section_of
from tui.facts.tables import Field, Number
from tui.facts.vocabulary import duration, money
from tui.facts.vocabulary import grouped as digits

from .row_set import METHOD, MODEL, RowSet, figure, groups_of, key_fields


class CostUnit(NamedTuple):
    """Something that attempts spend."""

    name: str
    of: Callable[[AttemptRow], float | None]
    """Spending of an attempt; `None` if unknown."""
    words: Callable[[float], str]


def _count_words(value: float) -> str:
    return digits(round(value))


def _tokens(row: AttemptRow) -> float | None:
    counts = [count for count in (row.input_tokens, row.output_tokens) if count is not None]
    return sum(counts) if counts else None


TOKENS = CostUnit("tokens", _tokens, _count_words)
COST = CostUnit("cost", lambda row: row.cost_usd, money)
DEVICE = CostUnit("device time", lambda row: row.device_s or None, duration)
WALL = CostUnit("wall time", lambda row: row.wall_s, duration)
MEANING = (
    "n: tasks, once for each session. attempts, tokens, cost, device time and wall time: sums over all judged attempts with a "
    "known figure, also those without a verdict on the candidate; attempts may run at the same time. A solved task: all judged "
    "attempts of a model over the solved tasks, without tasks that have a weak oracle."
)


def spent(rows: Sequence[AttemptRow], budget: CostUnit) -> float | None:
    """Return what attempts spent, as far as it is known; `None` if nothing is."""
    amounts = [value for row in rows if (value := budget.of(row)) is not None]
    return math.fsum(amounts) if amounts else None


class MethodCost(NamedTuple):
    """Spending of a method with a model."""

    keys: tuple[str, ...]
    rows: Sequence[AttemptRow]
    """All its judged attempts."""
    solved_task: SolvedTaskCost
    """Leaves out the tasks with a weak oracle."""


def cost_section(rows: RowSet) -> Section:
    """Return tokens, money, device time and wall time of each method and model, and for each solved task."""
    costs = [
        MethodCost(
            group.keys, group.rows, solved_task_cost([row for row in group.rows if not row.weak_oracle])
        )
        for group in groups_of(rows, (METHOD, MODEL), rows.rows)
    ]
    fields: tuple[Field[MethodCost], ...] = (
        *key_fields((METHOD, MODEL)),
        Field(Number("n"), lambda cost: figure(cost.solved_task.tasks, digits)),
        Field(Number("solved"), lambda cost: figure(cost.solved_task.solved, digits)),
        Field(Number("attempts"), lambda cost: figure(len(cost.rows), digits)),
        *map(_whole, (TOKENS, COST, DEVICE, WALL)),
        _each("tokens in", lambda cost: cost.input_tokens, _count_words),
        _each("tokens out", lambda cost: cost.output_tokens, _count_words),
        _each("cost", lambda cost: cost.cost_usd, money),
        _each("device time", lambda cost: cost.device_s or None, duration),
    )
    section = section_of("Cost", fields, costs, lambda cost: "|".join(cost.keys))
    return section.named("cost", (MEANING,))


def _whole(budget: CostUnit) -> Field[MethodCost]:
    return Field(
        Number(budget.name, if_known=True, drop=2),
        lambda cost: figure(spent(cost.rows, budget), budget.words),
    )


def _each(
    name: str, value: Callable[[SolvedTaskCost], float | None], words: Callable[[float], str]
) -> Field[MethodCost]:
    return Field(
        Number(f"{name} a solved task", if_known=True, drop=1),
        lambda cost: figure(value(cost.solved_task), words),
    )

"""What a solved task costs: tokens, money, device seconds and wall time of all attempts over the number of solved tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from .attempt_row import AttemptRow


class SolvedTaskCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of all independent judged attempts, also of failed and uncounted ones, divided by the solved tasks.

    A figure is `None` if no task is solved, or if it is unknown for an attempt. Attempts without a verdict have no row.
    """

    tasks: int
    """Tasks with a counted attempt."""
    solved: int
    attempts: float | None
    input_tokens: float | None
    output_tokens: float | None
    cost_usd: float | None
    """US dollars, by the prices of the session."""
    device_s: float | None
    """Seconds in which the judge held devices."""
    wall_s: float | None
    """Seconds from the start of an attempt to its verdict, added up also for attempts that ran side by side."""


def solved_task_cost(rows: Sequence[AttemptRow]) -> SolvedTaskCost:
    """Returns the cost of a solved task over all sessions of the rows; the same task in two sessions counts twice."""
    independent = [row for row in rows if row.independent]
    solved = len({(row.session, row.task) for row in independent if row.correct})

    def of_one(figure: Callable[[AttemptRow], float | None]) -> float | None:
        figures = [figure(row) for row in independent]
        known = [value for value in figures if value is not None]
        return math.fsum(known) / solved if solved and len(known) == len(figures) else None

    return SolvedTaskCost(
        tasks=len({(row.session, row.task) for row in independent if row.counted}),
        solved=solved,
        attempts=len(independent) / solved if solved else None,
        input_tokens=of_one(lambda row: row.input_tokens),
        output_tokens=of_one(lambda row: row.output_tokens),
        cost_usd=of_one(lambda row: row.cost_usd),
        device_s=of_one(lambda row: row.device_s),
        wall_s=of_one(lambda row: row.wall_s),
    )

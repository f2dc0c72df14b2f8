"""Intervals of shares and of any statistic over tasks."""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from statistics import NormalDist, fmean
from typing import TypeVar

T = TypeVar("T")

NORMAL = NormalDist()
Z95 = NORMAL.inv_cdf(0.975)
"""Standard deviations on each side that contain 95 % of a normal distribution."""
DRAWS = 1000
"""Draws of a bootstrap: the ends of a 95 % interval then rest on 25 draws each."""


def wilson_interval(successes: int, trials: int) -> tuple[float, float] | None:
    """Returns the 95 % confidence interval of a share, 0 to 1; `None` without trials.

    Source: Wilson, JASA 22, 1927; without continuity correction. It assumes independent trials: instances of a task
    are independent, attempts of one instance are not.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} of {trials} trials is not a share")
    if not trials:
        return None
    share, squared = successes / trials, Z95 * Z95
    middle = share + squared / (2 * trials)
    half = Z95 * math.sqrt(share * (1 - share) / trials + squared / (4 * trials * trials))
    whole = 1 + squared / trials
    # At 0 and 1 the bound is exact; rounding would miss it.
    low = 0.0 if successes == 0 else (middle - half) / whole
    high = 1.0 if successes == trials else (middle + half) / whole
    return low, high


def bootstrap_interval(
    tasks: Sequence[T],
    statistic: Callable[[Sequence[T]], float | None],
    *,
    seed: int = 0,
    draws: int = DRAWS,
) -> tuple[float, float] | None:
    """Returns the 95 % BCa bootstrap interval of a statistic over tasks.

    `tasks` has one item a task: a row, a list of rows, a pair of rows of two methods. Tasks are drawn with replacement, because
    attempts at one task depend on each other. Equal arguments give equal intervals. `None` with fewer than two tasks, if the
    statistic is unknown, or if it is unknown in more than a tenth of the draws; single such draws are left out.
    Numbers are about ten times faster than rows: 184 tasks take 0.03 s and 0.24 s.
    For a share near 0 or 1 of few tasks use `wilson_interval`: no draw has an outcome that the tasks do not have.
    Source: Efron, JASA 82, 1987: bias-corrected and accelerated.
    """
    value = statistic(tasks)
    if value is None or len(tasks) < 2:
        return None
    generator = random.Random(seed)
    drawn = (statistic(generator.choices(tasks, k=len(tasks))) for _ in range(draws))
    values = sorted(figure for figure in drawn if figure is not None)
    if len(values) < 0.9 * draws:
        return None
    if values[0] == values[-1]:
        return values[0], values[0]
    # The share of draws below the value, ties counted half, and never 0 or 1.
    below = (bisect_left(values, value) + bisect_right(values, value)) / 2
    bias = NORMAL.inv_cdf(min(max(below, 0.5), len(values) - 0.5) / len(values))
    acceleration = _acceleration(tasks, statistic)

    def end(z: float) -> float:
        shifted = NORMAL.cdf(bias + (bias + z) / (1 - acceleration * (bias + z)))
        return values[min(len(values) - 1, max(0, math.floor(shifted * len(values))))]

    return end(-Z95), end(Z95)


def _acceleration(tasks: Sequence[T], statistic: Callable[[Sequence[T]], float | None]) -> float:
    """The skewness of the statistic by leaving out one task at a time; 0 if a figure is then unknown."""
    values = [statistic([*tasks[:place], *tasks[place + 1 :]]) for place in range(len(tasks))]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return 0.0
    middle = fmean(known)
    differences = [middle - value for value in known]
    squares = math.fsum(difference**2 for difference in differences)
    return math.fsum(difference**3 for difference in differences) / (6 * squares**1.5) if squares else 0.0

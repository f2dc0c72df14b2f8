"""Intervals of shares and of any statistic over tasks. scipy is imported by the first figure that needs it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sessions.errors import ExtraMissing

T = TypeVar("T")

Z95 = 1.959963984540054
"""Standard deviations on each side that contain 95 % of a normal distribution."""
DRAWS = 1000
"""Draws of a bootstrap: the ends of a 95 % interval then rest on 25 draws each."""


def scipy_stats() -> Any:
    """Returns `scipy.stats`; raises `ExtraMissing` if it is not installed. The first call takes about 0.7 s."""
    try:
        from scipy import stats
    except ImportError as error:
        raise ExtraMissing("scipy", extra="reports") from error
    return stats


def wilson_interval(successes: int, trials: int) -> tuple[float, float] | None:
    """Returns the 95 % confidence interval of a share, 0 to 1; `None` without trials.

    Source: Wilson, JASA 22, 1927; without continuity correction. It assumes independent trials: instances of a task
    are independent, attempts of one instance are not. The cockpit shows it, so it needs no scipy.
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
    tasks: Sequence[T], statistic: Callable[[Sequence[T]], float | None], *, seed: int = 0, draws: int = DRAWS
) -> tuple[float, float] | None:
    """Returns the 95 % BCa bootstrap interval of a statistic over tasks; `None` with fewer than two tasks, or unknown.

    `tasks` has one item a task: a number, a row, a list of rows. Tasks are drawn with replacement, because attempts at one task
    depend on each other. Equal arguments give equal intervals. For a share near 0 or 1 of few tasks use `wilson_interval`.
    Raises `ExtraMissing` without scipy. Source: Efron, JASA 82, 1987: bias-corrected and accelerated.
    """
    if len(tasks) < 2 or statistic(tasks) is None:
        return None
    stats = scipy_stats()
    import numpy as np

    with warnings.catch_warnings():
        # Equal tasks have no acceleration: their interval is their value.
        warnings.simplefilter("ignore")
        drawn = stats.bootstrap(
            (np.arange(len(tasks)),),
            lambda places: np.array(statistic([tasks[place] for place in places]), float),
            vectorized=False,
            n_resamples=draws,
            method="BCa",
            random_state=np.random.default_rng(seed),
        )
    values, (low, high) = drawn.bootstrap_distribution, drawn.confidence_interval
    if values.min() == values.max():
        return float(values[0]), float(values[0])
    return None if math.isnan(low) or math.isnan(high) else (float(low), float(high))

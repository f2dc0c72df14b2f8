"""
The ratio of two latencies with its interval, from samples of several pairs of processes. Torch-free.

Each process has a bias (its placement of memory and code), so samples of one process are not independent: the unit is the pair
of processes. The ratio is the geometric mean over pairs of the ratio of medians. Its interval is the wider of two: Student's
over the pairs' logarithms, and a hierarchical bootstrap (pairs, then samples within each process; Efron and Tibshirani, An
Introduction to the Bootstrap, 1993, chapter 8). The bootstrap alone is too narrow for three pairs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .latency import Bound, Method, Outcome

if TYPE_CHECKING:
    import numpy as np

LOOKS = 2
"""Looks at an interval, with more pairs between them. Each look has level 1 - 0.05 / LOOKS, so all together 95 % (Bonferroni)."""
PAIRS_A_LOOK = 3
RESOLVED = 0.02
"""Relative half width of an interval at which no more pairs are sampled."""
TIE = 0.01
"""Speedups that differ by less rank as equal: the bias of processes that remains after a few pairs."""
FLOORS = {Method.EVENTS: 5.0, Method.GRAPH: 2.5}
"""A kernel that takes less than this many times an empty kernel's time is too short to be timed exactly."""
CLEAR = 0.05
"""The same for an interval that does not contain 1: more pairs would not change the outcome."""
DRAWS = 1000
_LEVEL = 0.05 / LOOKS
_STUDENT = (25.452, 6.2053, 4.1765, 3.4954, 3.1634, 2.9687, 2.8412, 2.7515, 2.6850, 2.6338, 2.5931)
"""Quantiles of Student's distribution at 1 - _LEVEL / 2 for 1, 2, ... degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A speedup with its interval."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of the interval's width, relative to the value."""
        return (self.high - self.low) / 2 / self.value

    @property
    def is_resolved(self) -> bool:
        """Whether no more pairs are needed."""
        return self.half_width <= (RESOLVED if self.outcome is Outcome.NOT_RESOLVED else CLEAR)

    @property
    def outcome(self) -> Outcome:
        """The conclusion that the interval allows."""
        if self.low > 1:
            return Outcome.FASTER
        if self.high < 1:
            return Outcome.SLOWER
        return Outcome.NOT_RESOLVED


def find_bound(
    baseline_ms: float, candidate_ms: float, floor_ms: float | None, method: Method = Method.EVENTS
) -> Bound | None:
    """Return how the ratio of two times relates to the true speedup; `None` if both are too short for a ratio.

    `floor_ms` is an empty kernel's time by the same method, `None` if it is not known.
    """
    shortest_ms = FLOORS[method] * (floor_ms or 0.0)
    if max(baseline_ms, candidate_ms) < shortest_ms:
        return None
    if candidate_ms < shortest_ms:
        return Bound.AT_LEAST
    return Bound.AT_MOST if baseline_ms < shortest_ms else Bound.NONE


def ratio(slow: Sequence[Sequence[float]], fast: Sequence[Sequence[float]], *, seed: int = 0) -> Ratio:
    """Return the ratio of `slow` to `fast`. Entry i of both holds the samples of pair i; at least two pairs are needed."""
    if len(slow) != len(fast) or len(slow) < 2:
        raise ValueError("a ratio needs two or more pairs of processes")
    import numpy as np  # here, so that the cockpit starts without it

    logs = [
        math.log(statistics.median(slow_samples) / statistics.median(fast_samples))
        for slow_samples, fast_samples in zip(slow, fast, strict=True)
    ]
    middle = statistics.fmean(logs)
    freedom = min(len(logs) - 1, len(_STUDENT))
    reach = _STUDENT[freedom - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    means = _bootstrap(slow, fast, np.random.default_rng(seed))
    low = min(middle - reach, float(np.quantile(means, _LEVEL / 2)))
    high = max(middle + reach, float(np.quantile(means, 1 - _LEVEL / 2)))
    return Ratio(math.exp(middle), math.exp(low), math.exp(high))


def _bootstrap(
    slow: Sequence[Sequence[float]], fast: Sequence[Sequence[float]], random: np.random.Generator
) -> np.ndarray:
    """`DRAWS` means of log ratios, each over resampled pairs and samples."""
    import numpy as np

    by_pair = np.stack(
        [
            np.log(_medians(slow_samples, random)) - np.log(_medians(fast_samples, random))
            for slow_samples, fast_samples in zip(slow, fast, strict=True)
        ]
    )
    chosen = random.integers(0, len(by_pair), size=by_pair.shape)
    means: np.ndarray = np.take_along_axis(by_pair, chosen, axis=0).mean(axis=0)
    return means


def _medians(samples: Sequence[float], random: np.random.Generator) -> np.ndarray:
    """Medians of `DRAWS` resamplings."""
    import numpy as np

    values = np.asarray(samples, dtype=float)
    chosen = random.integers(0, len(values), size=(DRAWS, len(values)))
    medians: np.ndarray = np.median(values[chosen], axis=1)
    return medians


def median_error(samples: Sequence[float]) -> float:
    """
    Return the relative standard error of a sample's median, from the spread of its middle half.

    For a normal sample the interquartile range is 1.349 deviations. The error of the median is 1.2533 / sqrt(n) deviations
    (Kendall and Stuart, The Advanced Theory of Statistics, volume 1).
    """
    if len(samples) < 2:
        return math.inf
    quarter, middle, third = statistics.quantiles(samples, n=4, method="inclusive")
    return 1.2533 * (third - quarter) / 1.349 / math.sqrt(len(samples)) / middle

"""The ratio of two latencies with its interval, from samples of several pairs of processes. Torch-free.

Each process has a bias (its placement of memory and code), so samples of one process are not independent: the unit is the pair
of processes. The ratio is the geometric mean over pairs of the ratio of medians. Its interval is the wider of two: Student's
over the pairs' logarithms, and a hierarchical bootstrap (pairs, then samples within each process; Efron and Tibshirani, An
Introduction to the Bootstrap, 1993, chapter 8). The bootstrap alone is too narrow for three pairs. A mean over cases has an
interval of the same kind, over the pairs of all cases together.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .latency import Bound, Outcome, TimingMethod

if TYPE_CHECKING:
    import numpy as np

MEDIAN_ERROR = 0.0025
"""Rounds of samples go on until the relative error of each process's median is this small, or rounds or time run out."""
LOOKS = 2
"""Looks at an interval, with more pairs between them. Each look has level 1 - 0.05 / LOOKS, so all together 95 % (Bonferroni)."""
PAIRS_A_LOOK = 3
RESOLVED = 0.02
"""Relative half width of an interval at which no more pairs are sampled."""
TIE = 0.01
"""Speedups that differ by less rank as equal: the bias of processes that remains after a few pairs."""
FLOORS = {
    TimingMethod.EVENTS: 5.0,
    TimingMethod.GRAPH: 2.5,
    TimingMethod.BATCH: 2.5,
    TimingMethod.PROFILER: 2.5,
}
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
    def interval(self) -> tuple[float, float]:
        """Both ends."""
        return self.low, self.high

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


@dataclass(frozen=True, slots=True)
class CaseRatios:
    """Logarithms of the ratio of medians of one case, by pair of processes."""

    pairs: tuple[int, ...]
    logs: tuple[float, ...]
    draws: np.ndarray
    """The same of `DRAWS` resamplings of each process's samples: (pairs, draws)."""


def find_bound(
    baseline_ms: float,
    candidate_ms: float,
    floor_ms: float | None,
    method: TimingMethod = TimingMethod.EVENTS,
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


def without_floor(speedup: float, baseline_ms: float, candidate_ms: float, floor_ms: float) -> float | None:
    """Return the speedup with the floor subtracted from both times; `None` if the candidate takes no longer than the floor."""
    if candidate_ms <= floor_ms:
        return None
    return speedup * (1 - floor_ms / baseline_ms) / (1 - floor_ms / candidate_ms)


def ratio(slow: Sequence[Sequence[float]], fast: Sequence[Sequence[float]]) -> Ratio:
    """Return the ratio of `slow` to `fast`. Entry i of both holds the samples of pair i; at least two pairs are needed."""
    return mean_ratio([case_ratios(slow, fast)])


def case_ratios(
    slow: Sequence[Sequence[float]],
    fast: Sequence[Sequence[float]],
    pairs: Sequence[int] = (),
    *,
    seed: int = 0,
) -> CaseRatios:
    """Return the ratios of one case. Entry i of `slow` and `fast` holds the samples of pair `pairs[i]`, by default of pair i."""
    if len(slow) != len(fast) or len(slow) < 2:
        raise ValueError("a ratio needs two or more pairs of processes")
    import numpy as np  # here, so that the cockpit starts without it

    random = np.random.default_rng(seed)
    both = list(zip(slow, fast, strict=True))
    logs = (
        math.log(statistics.median(slow_samples) / statistics.median(fast_samples))
        for slow_samples, fast_samples in both
    )
    draws = np.stack(
        [
            np.log(_medians(slow_samples, random)) - np.log(_medians(fast_samples, random))
            for slow_samples, fast_samples in both
        ]
    )
    return CaseRatios(tuple(pairs) or tuple(range(len(both))), tuple(logs), draws)


def mean_ratio(
    cases: Sequence[CaseRatios], *, arithmetic: bool = False, weights: Sequence[float] = (), seed: int = 0
) -> Ratio:
    """Return the geometric (or arithmetic) mean over cases of each case's ratio, the geometric mean over its pairs.

    With `weights`, the share of each case in the slow side's time, it is the ratio of the sums of times.

    A pair's processes time all cases, so their bias is common to the cases: pairs are resampled for all cases together. Cases
    may have different pairs.
    """
    import numpy as np

    middles = [statistics.fmean(case.logs) for case in cases]
    values = [math.exp(middle) for middle in middles]
    if weights:
        fast = [weight / value for weight, value in zip(weights, values, strict=True)]
        shares = [time / math.fsum(fast) for time in fast]
        middle = math.log(math.fsum(weights) / math.fsum(fast))
    else:
        shares = [value / math.fsum(values) if arithmetic else 1 / len(cases) for value in values]
        middle = math.log(statistics.fmean(values)) if arithmetic else statistics.fmean(middles)
    # How far each pair moves the logarithm of the mean.
    moves: dict[int, float] = {}
    for case, case_middle, share in zip(cases, middles, shares, strict=True):
        for pair, log in zip(case.pairs, case.logs, strict=True):
            moves[pair] = moves.get(pair, 0.0) + share * (log - case_middle) / len(case.logs)
    fewest = min(len(case.logs) for case in cases)
    error = math.sqrt(fewest / (fewest - 1)) * math.hypot(*moves.values())
    reach = _STUDENT[min(fewest - 1, len(_STUDENT)) - 1] * error
    drawn = _bootstrap(cases, np.random.default_rng((seed, 1)))
    if weights:
        means = math.log(math.fsum(weights)) - np.log(np.asarray(weights) @ np.exp(-drawn))
    else:
        means = np.log(np.exp(drawn).mean(axis=0)) if arithmetic else drawn.mean(axis=0)
    low = min(middle - reach, float(np.quantile(means, _LEVEL / 2)))
    high = max(middle + reach, float(np.quantile(means, 1 - _LEVEL / 2)))
    return Ratio(math.exp(middle), math.exp(low), math.exp(high))


def _bootstrap(cases: Sequence[CaseRatios], random: np.random.Generator) -> np.ndarray:
    """Means of log ratios over resampled pairs and samples: (cases, draws). The pairs of a draw are the same in all cases."""
    import numpy as np

    pairs = sorted({pair for case in cases for pair in case.pairs})
    chosen = random.integers(0, len(pairs), size=(len(pairs), DRAWS))
    counts = {pair: (chosen == place).sum(axis=0) for place, pair in enumerate(pairs)}
    weights = [np.stack([counts[pair] for pair in case.pairs]) for case in cases]
    whole = np.all([weight.any(axis=0) for weight in weights], axis=0)  # each case has a pair of the draw
    return np.stack(
        [
            (case.draws * weight).sum(axis=0)[whole] / weight.sum(axis=0)[whole]
            for case, weight in zip(cases, weights, strict=True)
        ]
    )


def _medians(samples: Sequence[float], random: np.random.Generator) -> np.ndarray:
    """Medians of `DRAWS` resamplings."""
    import numpy as np

    values = np.asarray(samples, dtype=float)
    chosen = random.integers(0, len(values), size=(DRAWS, len(values)))
    medians: np.ndarray = np.median(values[chosen], axis=1)
    return medians


def median_error(samples: Sequence[float]) -> float:
    """Return the relative standard error of a sample's median, from the spread of its middle half.

    For a normal sample the interquartile range is 1.349 deviations. The error of the median is 1.2533 / sqrt(n) deviations
    (Kendall and Stuart, The Advanced Theory of Statistics, volume 1).
    """
    if len(samples) < 2:
        return math.inf
    quarter, middle, third = statistics.quantiles(samples, n=4, method="inclusive")
    return 1.2533 * (third - quarter) / 1.349 / math.sqrt(len(samples)) / middle

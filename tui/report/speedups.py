"""The speedup of an attempt over its cases, and its share of the practical roof."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness import Evaluation, Latency, Outcome
from harness.wire.latency import Bound
from harness.wire.ratios import FLOORS
from tui.certainty import counted_cases


@dataclass(frozen=True, slots=True)
class Speedup:
    """Geometric mean of the cases' speedups."""

    ratio: float
    bound: Bound
    """`at least` or `at most` if the launch hides a part of some case."""
    interval: tuple[float, float] | None
    """95 %, of the cases that are no bounds; `None` if a case is a bound or has no interval."""
    cases: int
    """Cases with a ratio."""
    of_cases: int
    exact: Speedup | None = None
    """The mean without the bounds, if some cases are bounds and some are not."""
    is_faster: bool = False
    """True if every case with a ratio is faster, with an interval above 1."""
    is_slower: bool = False
    """True if every case with a ratio is slower, with an interval below 1."""


def speedup_of(evaluation: Evaluation) -> Speedup | None:
    """
    Return the speedup of a correct evaluation; `None` if it has none (`no_speedup_words` says why).

    The interval has the geometric means of the cases' bounds. It covers at least 95 %, however the errors of the
    cases depend on each other, because the deviation of a mean is at most the mean of the deviations.
    """
    if evaluation.speedup is None:
        return None
    timed = [latency for latency in evaluation.latency if latency.speedup is not None]
    count = len(evaluation.latency) + len(evaluation.not_timed)
    if not timed:
        return Speedup(evaluation.speedup_geomean or evaluation.speedup, Bound.NONE, None, 0, count)
    exact = [latency for latency in timed if latency.bound is Bound.NONE]
    whole = _mean(timed, count, evaluation.speedup_bound)
    if not exact or len(exact) == len(timed):
        return whole
    return Speedup(
        whole.ratio,
        whole.bound,
        None,
        whole.cases,
        whole.of_cases,
        _mean(exact, count, Bound.NONE),
        whole.is_faster,
        whole.is_slower,
    )


def _mean(timed: Sequence[Latency], count: int, bound: Bound) -> Speedup:
    intervals = [latency.ci for latency in timed if latency.ci is not None and latency.bound is Bound.NONE]
    interval = None
    if len(intervals) == len(timed):
        interval = geomean([low for low, _ in intervals]), geomean([high for _, high in intervals])
    return Speedup(
        geomean([latency.speedup for latency in timed if latency.speedup is not None]),
        bound,
        interval,
        len(timed),
        count,
        is_faster=all(latency.outcome is Outcome.FASTER for latency in timed),
        is_slower=all(latency.outcome is Outcome.SLOWER for latency in timed),
    )


def geomean(ratios: Sequence[float]) -> float:
    """Return the geometric mean of positive numbers; 0 if one of them is 0, as a bound of an interval can be."""
    if any(ratio <= 0 for ratio in ratios):
        return 0.0
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def no_speedup_words(evaluation: Evaluation, *, has_gpu: bool) -> str:
    """Return why a correct evaluation has no speedup; empty if it has one."""
    if evaluation.speedup is not None:
        return ""
    if evaluation.not_timed:
        return f"no overall speedup: {counted_cases(len(evaluation.not_timed))} without a time"
    if evaluation.latency:
        return "no overall speedup: every case is too short on both sides"
    return "not measured" if has_gpu else "not measured: no GPU"


class RoofShare(NamedTuple):
    """Share of the practical roof of the device in one case."""

    share: float
    """1 is the roof: the fastest copy, or a large matrix product, that this session measured on this device."""
    limit: str
    """`memory` or `compute`."""


def roof_share(latency: Latency) -> RoofShare | None:
    """Return the larger of the two shares; `None` if the roof is unknown, the share is suspect, or the launch limits."""
    used = latency.efficiency
    if used is None or used.suspect or is_launch_bound(latency):
        return None
    shares = [
        RoofShare(share, limit)
        for share, limit in ((used.io_measured, "memory"), (used.mfu_measured, "compute"))
        if share is not None
    ]
    return max(shares, default=None)


def roof_range(evaluation: Evaluation) -> tuple[RoofShare, RoofShare] | None:
    """Return the smallest and the largest share of the cases; `None` if no case has a share."""
    shares = [share for latency in evaluation.latency if (share := roof_share(latency)) is not None]
    return (min(shares), max(shares)) if shares else None


def is_launch_bound(latency: Latency) -> bool:
    """True if the candidate takes hardly longer than an empty kernel."""
    return latency.outcome is Outcome.TOO_SHORT or latency.bound is Bound.AT_LEAST


def shortest_us(latency: Latency) -> float | None:
    """Return the shortest time in microseconds that is timed exactly in this case; `None` if it is unknown."""
    return None if latency.floor_ms is None else FLOORS[latency.method] * latency.floor_ms * 1e3

"""The speedup of an attempt over its cases, and its share of the practical roof."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness import Evaluation, Latency, Outcome
from harness.wire.latency import Bound
from harness.wire.ratios import FLOORS
from sessions.speedups import Speedup, exact_speedup, speedup_of


@dataclass(frozen=True, slots=True)
class Figures:
    """The speedup of an attempt as a report shows it: a bound never has an interval."""

    ratio: float
    """Geometric mean over the cases with a ratio."""
    bound: Bound
    """`at least` or `at most` if the launch hides a part of some case."""
    interval: tuple[float, float] | None
    """95 %; `None` if a case is a bound or has no interval."""
    cases: int
    """Cases with a ratio."""
    of_cases: int
    exact: Figures | None = None
    """The mean without the bounds, if some cases are bounds and some are not."""
    is_faster: bool = False
    """True if the interval is above 1."""
    is_slower: bool = False
    """True if the interval is below 1."""


def figures_of(evaluation: Evaluation) -> Figures | None:
    """Return the speedup of a correct evaluation; `None` if it has none (`no_speedup_words` says why)."""
    overall, exact = speedup_of(evaluation), exact_speedup(evaluation)
    if overall is None:
        return None
    has_bounds = exact is None or exact.cases < overall.cases
    return Figures(
        overall.value,
        overall.bound,
        None if has_bounds else _interval(overall),
        overall.cases,
        overall.all_cases,
        _exact_figures(exact) if has_bounds and exact is not None else None,
        is_faster=overall.is_gain,
        is_slower=overall.is_loss,
    )


def _exact_figures(exact: Speedup) -> Figures:
    return Figures(exact.value, exact.bound, _interval(exact), exact.cases, exact.all_cases)


def _interval(speedup: Speedup) -> tuple[float, float] | None:
    return None if speedup.low is None or speedup.high is None else (speedup.low, speedup.high)


def geomean(ratios: Sequence[float]) -> float:
    """Return the geometric mean of positive numbers."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def no_speedup_words(evaluation: Evaluation, *, has_gpu: bool) -> str:
    """Return why a correct evaluation has no speedup; empty if it has one."""
    if any(latency.speedup is not None for latency in evaluation.latency):
        return ""
    if evaluation.latency:
        return "every case is too short on both sides"
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

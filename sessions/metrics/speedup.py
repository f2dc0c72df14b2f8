"""Means and shares of speedups over rows, each labelled by its definition.

A speedup is baseline time over candidate time, without unit. Only correct rows have one. A mean is `None` if no row has one, or
if several provenances (hardware or software) gave them: `selection.comparable_rows` leaves those out by number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from statistics import fmean, geometric_mean

from sessions.state.speed import joint_sign

from .accuracy import independent_rows
from .attempt_row import AttemptRow
from .selection import by_instance

FAST_P = (0.5, 0.8, 1.0, 1.2, 1.5, 2.0)
"""The values of p in tables of fast_p."""


class SpeedupDefinition(StrEnum):
    """What the speedup of one attempt is, over its cases."""

    HEADLINE = "headline"
    """Geometric mean of the ratios of median latencies over all open cases; time-weighted if the cases have weights."""
    GEAK = "GEAK"
    """Arithmetic mean of the ratios of median latencies, over the cases that have one (GEAK's paper)."""
    SUMS = "ratio of sums"
    """Sum of the baseline's medians over the sum of the candidate's (TritonBench, KernelBench-X; KernelBench has one case)."""
    TIME_WEIGHTED = "time-weighted"
    """Baseline time over candidate time of all calls of a recorded program; tasks whose cases have weights."""

    def of(self, row: AttemptRow) -> float | None:
        """Returns the speedup of a row by this definition; `None` if it was not measured."""
        match self:
            case SpeedupDefinition.HEADLINE:
                return row.headline
            case SpeedupDefinition.GEAK:
                return row.geak
            case SpeedupDefinition.SUMS:
                return row.sum_ratio
            case SpeedupDefinition.TIME_WEIGHTED:
                return row.headline if row.speed is not None and row.speed.weighted else None


def speedup_mean(
    rows: Iterable[AttemptRow], definition: SpeedupDefinition = SpeedupDefinition.GEAK
) -> float | None:
    """Returns the arithmetic mean of the rows' speedups. With `SpeedupDefinition.GEAK` it is the speedup of GEAK's tables.

    With `SpeedupDefinition.SUMS` it is `avg_speedup_per_task` of KernelBench-X.
    """
    speedups = _speedups(rows, definition)
    return fmean(speedups) if speedups else None


def speedup_geomean(
    rows: Iterable[AttemptRow], definition: SpeedupDefinition = SpeedupDefinition.HEADLINE
) -> float | None:
    """Returns the geometric mean of the rows' speedups (source: Fleming and Wallace, CACM 29(3), 1986)."""
    speedups = _speedups(rows, definition)
    return geometric_mean(speedups) if speedups else None


def speedup_sign(rows: Iterable[AttemptRow]) -> str:
    """Returns the sign of a mean over the rows' headlines: `>=`, `<=`, `~`, or empty without bounds."""
    return joint_sign(row.speed.sign for row in rows if row.speed is not None)


def are_mixed(rows: Iterable[AttemptRow]) -> bool:
    """True if the rows' speedups come from several provenances, so that no mean has all of them."""
    return len({row.provenance for row in rows if row.headline is not None}) > 1


def fast_p(rows: Iterable[AttemptRow], p: float) -> float | None:
    """Returns the share of the counted rows that is correct and more than `p` times as fast as the baseline, 0 to 1.

    Source: KernelBench; strict `>`. `None` if `p` > 0 and a correct row has no speedup, or if
    several provenances gave the speedups. `fast_p(0)` is the execution accuracy.
    """
    counted = [row for row in rows if row.counted]
    correct = [row for row in counted if row.correct]
    if not counted:
        return None
    if p <= 0:
        return len(correct) / len(counted)
    speedups = [row.headline for row in correct if row.headline is not None]
    if len(speedups) < len(correct) or are_mixed(counted):
        return None
    return sum(speedup > p for speedup in speedups) / len(counted)


def share_slower(rows: Iterable[AttemptRow]) -> float | None:
    """Returns the share of the timed correct rows that is slower than the baseline, 0 to 1 (source: KernelBench-X)."""
    speedups = _speedups(rows, SpeedupDefinition.HEADLINE)
    return sum(speedup < 1 for speedup in speedups) / len(speedups) if speedups else None


def expected_best(speedups: Sequence[float], k: int) -> float:
    """Returns the expected greatest of `k` values that are drawn without replacement: an unbiased estimate.

    The j-th smallest of n values is the greatest of C(j - 1, k - 1) of the C(n, k) draws. Raises `ValueError` unless
    1 <= k <= number of values.
    """
    if not 1 <= k <= len(speedups):
        raise ValueError(f"speedup@{k} of {len(speedups)} samples does not exist")
    draws = math.comb(len(speedups), k)
    ordered = enumerate(sorted(speedups))
    return math.fsum(math.comb(place, k - 1) * speedup for place, speedup in ordered) / draws


def speedup_at_each_k(rows: Iterable[AttemptRow]) -> list[float]:
    """Returns speedup@1, speedup@2, ... up to the number of instances that every task has; empty if they are unknown."""
    independent = independent_rows(rows)
    tasks: dict[str, list[float]] = {}
    for (_, task, _), instance in by_instance(independent).items():
        speedups = [row.headline for row in instance if row.headline is not None]
        if not speedups and any(row.correct for row in instance):
            return []
        tasks.setdefault(task, []).append(max(speedups, default=0.0))
    if are_mixed(independent):
        return []
    most = min(map(len, tasks.values()), default=0)
    return [fmean(expected_best(speedups, k) for speedups in tasks.values()) for k in range(1, most + 1)]


def utilisation(row: AttemptRow) -> float | None:
    """Returns max(IOU, MFU) of a row, 0 to 1 (source: TritonBench "GPU efficiency", KernelBench-X section 2.1)."""
    return max((share for share in (row.bandwidth, row.compute) if share is not None), default=None)


def _speedups(rows: Iterable[AttemptRow], definition: SpeedupDefinition) -> list[float]:
    """The speedups of correct rows; none if their provenances are mixed."""
    timed = [row for row in rows if row.correct and definition.of(row) is not None]
    if are_mixed(timed):
        return []
    return [speedup for row in timed if (speedup := definition.of(row)) is not None]

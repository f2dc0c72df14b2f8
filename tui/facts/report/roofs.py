"""The share of the practical roof that a case reaches, and cases that are too short for it."""

from __future__ import annotations

from typing import NamedTuple

from harness import Evaluation, Latency, Outcome
from harness.wire.latency import Bound
from harness.wire.ratios import FLOORS


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

"""Which timing samples to leave out, by the telemetry taken at the same time."""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Sequence

from .samples import Point

DISTURBED_CLOCK = "clock"
DISTURBED_OTHERS = "others"
LEAST_CLOCK = 0.9
"""Share of the usual clock below which a sample is disturbed.

Boost varies by a few percent with power and heat, equally for both sides of a pair. A lower clock means that the chip was
throttled or asleep, and moves a time by more than the 2 % that a ratio must resolve.
"""
REACH_S = 0.1
"""A point says nothing about a time further away than this."""


def usual_clock(series: Sequence[Point]) -> float | None:
    """Return the median clock of the busy device in MHz."""
    clocks = _busy_clocks(series)
    return statistics.median(clocks) if clocks else None


def find_disturbances(series: Sequence[Point], spans: Sequence[tuple[float, float]]) -> tuple[str, ...]:
    """
    Return for each span of timing (from, to, by `time.monotonic`) why it must be left out; empty if it may stay.

    `series` is in order of time. The points within a span and the next ones on both sides count: a dip may have begun before a
    point, or ended after it. An idle device's clock does not count. A span without a near point stays.

    Other processes disturb a span if there are more of them than at the quietest time of the series. Processes that are there
    all the time hold memory and wait: the lease keeps other engines of the node from computing. The window reports their number.
    """
    usual = usual_clock(series)
    quiet = min((point.others for point in series if point.others is not None), default=0)
    times = [point.at_s for point in series]
    return tuple(_disturbance(_points_near(series, times, *span), usual, quiet) for span in spans)


def _points_near(
    series: Sequence[Point], times: Sequence[float], began_s: float, ended_s: float
) -> list[Point]:
    first = max(bisect.bisect_left(times, began_s) - 1, 0)
    last = bisect.bisect_right(times, ended_s)
    return [
        point for point in series[first : last + 1] if began_s - REACH_S <= point.at_s <= ended_s + REACH_S
    ]


def _disturbance(points: Sequence[Point], usual: float | None, quiet: int) -> str:
    if any((point.others or 0) > quiet for point in points):
        return DISTURBED_OTHERS
    if usual is not None and any(clock < LEAST_CLOCK * usual for clock in _busy_clocks(points)):
        return DISTURBED_CLOCK
    return ""


def _busy_clocks(points: Sequence[Point]) -> list[int]:
    return [point.clock_mhz for point in points if point.clock_mhz is not None and not point.idle]

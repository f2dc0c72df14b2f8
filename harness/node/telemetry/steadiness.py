"""The state of the device during each span of timing, from the telemetry taken at the same time."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import NamedTuple

from .samples import Point

SAME_CLOCK = 0.9
"""Two clocks are the same if the lower has at least this share of the higher.

Boost varies by a few percent with power and heat, equally for both sides of a pair. A larger change means that the chip was
throttled or asleep, and moves a time by more than the 2 % that a ratio must resolve.
"""
REACH_S = 0.1
"""A point says nothing about a time further away than this."""


class SpanState(NamedTuple):
    """The device during one span."""

    clock_mhz: int | None = None
    """The lowest clock of the busy device; `None` if unknown."""
    disturbed: bool = False
    """More processes of others were on the device than at its quietest time."""


def is_same_clock(one_mhz: float, other_mhz: float) -> bool:
    """True if times at both clocks may be compared."""
    return min(one_mhz, other_mhz) >= SAME_CLOCK * max(one_mhz, other_mhz)


def span_states(series: Sequence[Point], spans: Sequence[tuple[float, float]]) -> tuple[SpanState, ...]:
    """Return the device's state in each span of timing (from, to, by `time.monotonic`).

    `series` is in order of time. The points within a span and the next ones on both sides count: a dip may have begun before a
    point, or ended after it. An idle device's clock does not count. A span without a near point has an unknown state.

    Processes of others that are there all the time disturb no span. They hold memory and wait: the lease keeps other engines
    of the node from computing. The window reports their number.
    """
    quiet = min((point.others for point in series if point.others is not None), default=0)
    times = [point.at_s for point in series]
    return tuple(_state(_points_near(series, times, *span), quiet) for span in spans)


def _points_near(
    series: Sequence[Point], times: Sequence[float], began_s: float, ended_s: float
) -> list[Point]:
    first = max(bisect.bisect_left(times, began_s) - 1, 0)
    last = bisect.bisect_right(times, ended_s)
    return [
        point for point in series[first : last + 1] if began_s - REACH_S <= point.at_s <= ended_s + REACH_S
    ]


def _state(points: Sequence[Point], quiet: int) -> SpanState:
    clocks = [point.clock_mhz for point in points if point.clock_mhz is not None and not point.idle]
    return SpanState(min(clocks, default=None), any((point.others or 0) > quiet for point in points))

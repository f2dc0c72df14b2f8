"""Which timing samples are to be left out, by what the device told while they were taken."""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Sequence

from .samples import Point

DISTURBED_CLOCK = "clock"
DISTURBED_OTHERS = "others"
LEAST_CLOCK = 0.9
"""Of the usual clock. Boost wanders by a few percent with power and heat, for both sides of a pair alike; what lies lower is
a chip that was held back or had not woken up, and moves a time by more than the 2 % that is asked of a ratio."""
REACH_S = 0.1
"""A sample of the device speaks for no time further away than this."""


def usual_clock(series: Sequence[Point]) -> float | None:
    """The median of the clocks that a busy device told, MHz."""
    clocks = [each.clock_mhz for each in series if each.clock_mhz is not None and not each.idle]
    return statistics.median(clocks) if clocks else None


def steady(series: Sequence[Point], spans: Sequence[tuple[float, float]]) -> tuple[str, ...]:
    """
    For each span of timing (from, to, by `time.monotonic`): why it is to be left out, or nothing where it may stay.

    `series` is in order of time. A span is judged by the points within it and the ones next to it on both sides: a dip
    between two of them may have begun before, or ended after. What an idle device told of its clock is passed over, and
    a span near no point stays: nothing speaks against it.

    Others disturb a span where there are more of them than at the quietest moment of the series. Those that are there all
    the time hold memory and wait: other engines of the node, above all, which the lease keeps from computing. How many
    they were stands in the window.
    """
    usual = usual_clock(series)
    quiet = min((each.others for each in series if each.others is not None), default=0)
    times = [each.at_s for each in series]
    return tuple(_why(_near(series, times, *span), usual, quiet) for span in spans)


def _near(series: Sequence[Point], times: Sequence[float], began_s: float, ended_s: float) -> list[Point]:
    first = max(bisect.bisect_left(times, began_s) - 1, 0)
    last = bisect.bisect_right(times, ended_s)
    return [each for each in series[first : last + 1] if began_s - REACH_S <= each.at_s <= ended_s + REACH_S]


def _why(points: Sequence[Point], usual: float | None, quiet: int) -> str:
    if any((each.others or 0) > quiet for each in points):
        return DISTURBED_OTHERS
    clocks = [each.clock_mhz for each in points if each.clock_mhz is not None and not each.idle]
    if usual is not None and any(clock < LEAST_CLOCK * usual for clock in clocks):
        return DISTURBED_CLOCK
    return ""

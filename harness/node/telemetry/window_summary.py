"""Summarizes the readings of a window, and finds the state of the device during each span of timing."""

from __future__ import annotations

import bisect
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harness.wire.results.latency import Window

from .reading import Reading
from .samples import DevicePoint

SAME_CLOCK = 0.9
"""Two clocks are the same if the lower has at least this share of the higher.

Boost varies by a few percent with power and heat, equally for both sides of a pair. A larger change means that the chip was
throttled or asleep, and moves a time by more than the 2 % that a ratio must resolve.
"""
REACH_S = 0.1
"""A point says nothing about a time further away than this."""


def summarize_window(
    source: str, readings: Sequence[Reading], points: Sequence[DevicePoint], *, ended_s: float | None = None
) -> Window:
    """Return the summary of these readings, oldest first, and of the other processes in `points`.

    Only clocks of a busy device count. `ended_s` (by `time.monotonic`) is the window's end; default: the last reading.
    """
    if not readings:
        return Window(source=source, seconds=0.0)
    first, last = readings[0], readings[-1]
    clocks = [reading.clock_mhz for reading in readings if reading.clock_mhz is not None and not reading.idle]
    powers = [reading.power_w for reading in readings if reading.power_w is not None]
    others = [point.others for point in points if point.others is not None]
    return Window(
        source=source,
        seconds=(last.at_s if ended_s is None else ended_s) - first.at_s,
        clock_mhz=min(clocks, default=None),
        clock_usual_mhz=round(statistics.median(clocks)) if clocks else None,
        hotspot_c=_highest(reading.hotspot_c for reading in readings),
        memory_c=_highest(reading.memory_c for reading in readings),
        power_w=statistics.fmean(powers) if powers else None,
        throttled=_reason_shares(readings) or _counter_growth(first, last),
        other_processes=max(others, default=None),
    )


def _highest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _reason_shares(readings: Sequence[Reading]) -> dict[str, float]:
    """Share of the readings of a busy device, by reason."""
    busy = [reading.reasons for reading in readings if reading.reasons is not None and not reading.idle]
    counts = Counter(reason for reasons in busy for reason in reasons)
    return {reason: count / len(busy) for reason, count in sorted(counts.items())}


def _counter_growth(first: Reading, last: Reading) -> dict[str, float]:
    """Growth of the driver's counters, as a share of the window's ticks if the driver counts ticks."""
    ticks = None if first.ticks is None or last.ticks is None else last.ticks - first.ticks
    growth = {
        name: last.counters[name] - count for name, count in first.counters.items() if name in last.counters
    }
    return {name: by / ticks if ticks else float(by) for name, by in sorted(growth.items()) if by > 0}


class SpanState(NamedTuple):
    """The device during one span."""

    clock_mhz: int | None = None
    """The lowest clock of the busy device; `None` if unknown."""
    disturbed: bool = False
    """More processes of others were on the device than at its quietest time."""


def is_same_clock(one_mhz: float, other_mhz: float) -> bool:
    """True if times at both clocks may be compared."""
    return min(one_mhz, other_mhz) >= SAME_CLOCK * max(one_mhz, other_mhz)


def span_states(series: Sequence[DevicePoint], spans: Sequence[tuple[float, float]]) -> tuple[SpanState, ...]:
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
    series: Sequence[DevicePoint], times: Sequence[float], began_s: float, ended_s: float
) -> list[DevicePoint]:
    """Return the points in a span of time, and the next one on each side if it is within `REACH_S`.

    `times` are those of the series.
    """
    first = max(bisect.bisect_left(times, began_s) - 1, 0)
    last = bisect.bisect_right(times, ended_s)
    return [
        point for point in series[first : last + 1] if began_s - REACH_S <= point.at_s <= ended_s + REACH_S
    ]


def _state(points: Sequence[DevicePoint], quiet: int) -> SpanState:
    clocks = [point.clock_mhz for point in points if point.clock_mhz is not None and not point.idle]
    return SpanState(min(clocks, default=None), any((point.others or 0) > quiet for point in points))

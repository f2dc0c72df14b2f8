"""Summary of the readings of a window."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from harness.wire.results.latency import Window

from .reading import Reading
from .samples import Point


def summarize_window(
    source: str, readings: Sequence[Reading], points: Sequence[Point], *, ended_s: float | None = None
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

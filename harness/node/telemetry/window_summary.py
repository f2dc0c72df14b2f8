"""What the readings of a window amount to."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from harness.wire.latency import Window

from .reading import Reading
from .samples import Point


def summary(
    source: str, readings: Sequence[Reading], points: Sequence[Point], *, ended_s: float | None = None
) -> Window:
    """
    The window that was read so often, oldest first, with who else was there. Of clocks only what a busy device told counts.

    Where the last reading was long before the window's end, `ended_s` (by `time.monotonic`) says when that was.
    """
    if not readings:
        return Window(source=source, seconds=0.0)
    first, last = readings[0], readings[-1]
    clocks = [each.clock_mhz for each in readings if each.clock_mhz is not None and not each.idle]
    powers = [each.power_w for each in readings if each.power_w is not None]
    company = [each.others for each in points if each.others is not None]
    return Window(
        source=source,
        seconds=(last.at_s if ended_s is None else ended_s) - first.at_s,
        clock_mhz=min(clocks, default=None),
        clock_usual_mhz=round(statistics.median(clocks)) if clocks else None,
        hotspot_c=_most(each.hotspot_c for each in readings),
        memory_c=_most(each.memory_c for each in readings),
        power_w=statistics.fmean(powers) if powers else None,
        energy_j=_energy(readings),
        throttled=_shares(readings) or _growth(first, last),
        other_processes=max(company, default=None),
    )


def _most(values: Iterable[float | None]) -> float | None:
    return max((each for each in values if each is not None), default=None)


def _energy(readings: Sequence[Reading]) -> float | None:
    """The counter's growth; nothing where it did not move, was not told, or began anew."""
    told = [each.energy_j for each in readings if each.energy_j is not None]
    grown = told[-1] - told[0] if len(told) > 1 else 0.0
    return grown if grown > 0 else None


def _shares(readings: Sequence[Reading]) -> dict[str, float]:
    """Of the readings of a busy device, by reason."""
    told = [each.reasons for each in readings if each.reasons is not None and not each.idle]
    seen = Counter(reason for reasons in told for reason in reasons)
    return {reason: times / len(told) for reason, times in sorted(seen.items())}


def _growth(first: Reading, last: Reading) -> dict[str, float]:
    """Of the driver's counters: as a share of the window where it tells what all of it would be, else as they grew."""
    ticks = None if first.ticks is None or last.ticks is None else last.ticks - first.ticks
    grown = {
        name: last.counters[name] - before for name, before in first.counters.items() if name in last.counters
    }
    return {name: by / ticks if ticks else float(by) for name, by in sorted(grown.items()) if by > 0}

"""Horizontal bars of the winners' speedups as text, on a scale that begins at 0."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from .section import NamedSpeed

LEAST_CELLS = 10
OUTLIER = 4.0
"""A speedup of more than so many times the median does not stretch the scale: its bar is cut, with a mark."""
BAR, BASELINE = "█", "│"
BEYOND = ">"
"""A lower bound: the bar goes on."""
LOW, BETWEEN, HIGH = "├─┤"
"""Characters of an interval."""
CUT = "//"
"""End of a bar that is longer than the scale."""


def scale_end(speeds: Sequence[NamedSpeed]) -> float:
    """Return the speedup at the right end of the scale: a round number beyond each bar but outliers, at least 1.25."""
    ends = [max(speed.value, speed.interval[1] if speed.interval else 0.0) for _, speed in speeds]
    limit = OUTLIER * statistics.median(ends) if ends else 1.0
    most = max([*(end for end in ends if end <= limit), 1.0]) * 1.02
    step: float = 10.0 ** math.floor(math.log10(most)) / 4
    return max(1.25, math.ceil(most / step) * step)


def bars_of(speeds: Sequence[NamedSpeed], cells: int) -> list[str]:
    """
    Return a bar of `cells` characters for each speedup.

    All bars have one linear scale from 0. The baseline's 1x has a mark of its own, and an interval covers its cells. A
    bar that is longer than the scale ends with a mark.
    """
    most = scale_end(speeds)
    return [_bar(named, most, max(cells, LEAST_CELLS)) for named in speeds]


def _bar(named: NamedSpeed, most: float, cells: int) -> str:
    speed = named.speed

    def place(ratio: float) -> int:
        return min(cells - 1, int(ratio / most * cells))

    end = place(speed.value)
    drawn = [BAR] * (end + 1) + [" "] * (cells - end - 1)
    if place(1.0) > end:
        drawn[place(1.0)] = BASELINE
    if speed.sign == ">=":
        drawn[end:] = [BEYOND] * (cells - end)
    if speed.interval is not None and speed.interval[1] <= most:
        low, high = place(speed.interval[0]), place(speed.interval[1])
        if high > low:
            drawn[low : high + 1] = [LOW, *[BETWEEN] * (high - low - 1), HIGH]
    if place(1.0) < end and drawn[place(1.0)] == BAR:
        drawn[place(1.0)] = BASELINE
    if speed.value > most:
        drawn[-len(CUT) :] = CUT
    return "".join(drawn)


def axis(speeds: Sequence[NamedSpeed], cells: int) -> str:
    """Return the scale under the bars: `0`, the baseline at `1x`, and the end."""
    most = scale_end(speeds)
    cells = max(cells, LEAST_CELLS)
    end = f"{most:g}x"
    line = list("0" + " " * (cells - 1))
    baseline = min(cells - 1, int(1.0 / most * cells))
    if baseline >= 2 and baseline + 3 < cells - len(end):
        line[baseline : baseline + 2] = "1x"
    line[cells - len(end) :] = end
    return "".join(line)

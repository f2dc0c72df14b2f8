"""Sparklines: the best speedup of a task over its attempts, and a device's utilisation over the last minute."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tui.instance_facts import InstanceFacts
from tui.vocabulary import UNKNOWN

BARS = "▁▂▃▄▅▆▇█"
TREND = 8
"""Cells of a sparkline."""
EQUAL = 2
"""The bar of a speedup of 1; five more are a speedup of 2."""


def trend(instances: Iterable[InstanceFacts]) -> str:
    """Return the best speedup so far over the attempts of a task: `▁▁▃▃▅▇`; the lowest bar stands for no speedup."""
    history = sorted(entry for facts in instances for entry in facts.history)
    if not history:
        return UNKNOWN.ljust(TREND)
    best = 0.0
    bars: list[str] = []
    for _, speedup in history:
        best = max(best, speedup or 0.0)
        level = round(EQUAL + 5 * math.log2(best)) if best > 0 else 0
        bars.append(BARS[min(max(level, 0), len(BARS) - 1)])
    return "".join(_sampled(bars, TREND)).ljust(TREND)


def last_minute(samples: Sequence[tuple[float, float | None]], now_wall: float, cells: int = TREND) -> str:
    """Return the utilisation of the last minute, newest at the right; a blank where nothing was sampled."""
    span_s = 60.0 / cells
    sums: list[list[float]] = [[] for _ in range(cells)]
    for wall, utilisation in samples:
        place = cells - 1 - int((now_wall - wall) // span_s)
        if utilisation is not None and 0 <= place < cells:
            sums[place].append(utilisation)
    return "".join(_bar(sum(part) / len(part)) if part else " " for part in sums)


def _bar(share: float) -> str:
    return BARS[min(int(share * len(BARS)), len(BARS) - 1)]


def _sampled(bars: Sequence[str], most: int) -> Sequence[str]:
    if len(bars) <= most:
        return bars
    return [bars[(place + 1) * len(bars) // most - 1] for place in range(most)]

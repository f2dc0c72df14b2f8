"""Horizontal bars of the winners' speedups as text, on a scale that begins at 0."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from sessions.names import short_task

from .section import TimedWinner

NAME_CELLS = 24
SHARE_CELLS = 24
LEAST_CELLS = 10
OUTLIER = 4.0
"""A speedup of more than so many times the median does not stretch the scale: its bar is cut, with a mark."""


@dataclass(frozen=True, slots=True)
class Glyphs:
    """Characters of a bar."""

    bar: str = "█"
    beyond: str = ">"
    """A lower bound: the bar goes on."""
    low: str = "├"
    between: str = "─"
    high: str = "┤"
    baseline: str = "│"
    cut: str = "//"
    """End of a bar that is longer than the scale."""


PLAIN = Glyphs("#", ">", "[", "-", "]", "|", "//")
"""Characters of ASCII."""


@dataclass(frozen=True, slots=True)
class FigureBar:
    """One line: a name, a bar, and the figure in words."""

    name: str
    drawing: str
    figure: str


def bars_of(winners: Sequence[TimedWinner], cells: int, glyphs: Glyphs = PLAIN) -> list[FigureBar]:
    """
    Return a bar for each winner with a speedup, in the order of the winners. `cells` is the width of the drawing.

    All bars have one linear scale from 0. The baseline's 1x has a mark of its own, and an interval covers its cells. A
    bar that is longer than the scale ends with a mark.
    """
    timed = [winner for winner in winners if winner.speed is not None]
    most = scale_end(timed)
    return [
        FigureBar(
            short_task(winner.task),
            _drawing(winner, most, max(cells, LEAST_CELLS), glyphs),
            winner.speed.words if winner.speed is not None else "",
        )
        for winner in timed
    ]


def scale_end(winners: Sequence[TimedWinner]) -> float:
    """Return the speedup at the right end of the scale: a round number beyond each bar but outliers, at least 1.25."""
    ends = [
        max(winner.speed.value, winner.speed.interval[1] if winner.speed.interval else 0.0)
        for winner in winners
        if winner.speed is not None
    ]
    limit = OUTLIER * statistics.median(ends) if ends else 1.0
    most = max([*(end for end in ends if end <= limit), 1.0]) * 1.02
    step: float = 10.0 ** math.floor(math.log10(most)) / 4
    return max(1.25, math.ceil(most / step) * step)


def _drawing(winner: TimedWinner, most: float, cells: int, glyphs: Glyphs) -> str:
    speed = winner.speed
    assert speed is not None, "only winners with a speed have a bar"

    def place(ratio: float) -> int:
        return min(cells - 1, int(ratio / most * cells))

    end = place(speed.value)
    drawn = [glyphs.bar] * (end + 1) + [" "] * (cells - end - 1)
    if place(1.0) > end:
        drawn[place(1.0)] = glyphs.baseline
    if speed.sign == ">=":
        drawn[end:] = [glyphs.beyond] * (cells - end)
    if speed.interval is not None and speed.interval[1] <= most:
        low, high = place(speed.interval[0]), place(speed.interval[1])
        if high > low:
            drawn[low : high + 1] = [glyphs.low, *[glyphs.between] * (high - low - 1), glyphs.high]
    if place(1.0) < end and drawn[place(1.0)] == glyphs.bar:
        drawn[place(1.0)] = glyphs.baseline
    if speed.value > most:
        drawn[-len(glyphs.cut) :] = glyphs.cut
    return "".join(drawn)


def share_bar(share: float) -> str:
    """Return a bar of a share of 0 to 1."""
    return PLAIN.bar * round(share * SHARE_CELLS)


def axis(winners: Sequence[TimedWinner], cells: int) -> str:
    """Return the scale under the bars: `0`, the baseline at `1x`, and the end."""
    most = scale_end([winner for winner in winners if winner.speed is not None])
    cells = max(cells, LEAST_CELLS)
    end = f"{most:g}x"
    line = list("0" + " " * (cells - 1))
    baseline = min(cells - 1, int(1.0 / most * cells))
    if baseline >= 2 and baseline + 3 < cells - len(end):
        line[baseline : baseline + 2] = "1x"
    line[cells - len(end) :] = end
    return "".join(line)


def bar_lines(winners: Sequence[TimedWinner], cells: int, glyphs: Glyphs = PLAIN) -> list[str]:
    """Return the bars with names and figures, and the scale below; empty if no winner was timed."""
    bars = bars_of(winners, cells, glyphs)
    if not bars:
        return []
    names = min(NAME_CELLS, max(len(bar.name) for bar in bars))
    lines = [f"{_cut(bar.name, names):<{names}}  {bar.drawing}  {bar.figure}" for bar in bars]
    return [*lines, f"{'':<{names}}  {axis(winners, cells)}".rstrip()]


def _cut(name: str, cells: int) -> str:
    """Return a name in at most `cells` characters; the end of a name says more than its start."""
    return name if len(name) <= cells else "..." + name[3 - cells :]

"""Scales with round ticks, and the frame of a canvas: axes, ticks and units."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from tui.cockpit.draw.lines import Line, Span

from .canvas import Canvas

PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True)
class Scale:
    """The values between the two ends of an axis; both are above 0 if `log`."""

    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float:
        """Return the position of a value: 0 at `low`, 1 at `high`."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[float]:
        """Return at most `most` round values from low to high."""
        return next((values for values in self._round_values() if len(values) <= max(most, 1)), [])

    def _round_values(self) -> Iterator[list[float]]:
        """Yield sets of round values, from many to few."""
        if not self.log:
            power = math.floor(math.log10(self.high - self.low)) - 1
            for step in (factor * 10.0**exponent for exponent in count(power) for factor in (1, 2, 5)):
                first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
                yield [index * step for index in range(first, last + 1)]
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for factors, apart in (
            ((1, 2, 5), 1),
            ((1, 3), 1),
            *(((1,), apart) for apart in range(1, len(powers) + 1)),
        ):
            values = (factor * 10.0**power for power in powers if power % apart == 0 for factor in factors)
            yield [value for value in values if self.low <= value <= self.high]


def covering(values: Iterable[float], *, log: bool = False) -> Scale:
    """Return a scale that shows all values with a margin at both ends; `ValueError` without values."""
    numbers = list(values)
    low, high = min(numbers), max(numbers)
    if log:
        return Scale(low / 1.5, high * 1.5, log=True)
    margin = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return Scale(low - margin, high + margin)


@dataclass(frozen=True, slots=True)
class PlotAxis:
    """A scale with its unit and with the form of its tick labels."""

    scale: Scale
    title: str
    label: Callable[[float], str]
    """A horizontal axis has no tick where the label is empty."""
    tick_cells: int = 10
    """Least cells for a tick of a horizontal axis."""


def number(value: float) -> str:
    """Return a value in at most four characters, if it is below 10,000: `0.5`, `1.25`, `130`, `12k`."""
    for size, prefix in PREFIXES:
        if abs(value) >= 10 * size or (size > 1e3 and abs(value) >= size):
            return f"{value / size:.3g}{prefix}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def framed(canvas: Canvas, x: PlotAxis, y: PlotAxis, *, ascii: bool) -> list[Line]:
    """Return the canvas with a title line, labelled axes and the title of `x` below; see `frame_size`."""
    bar, corner, rule, tick = "|+-+" if ascii else "│└─┴"
    labels = {
        round((1 - y.scale.share(value)) * (canvas.height - 1)): y.label(value)
        for value in y.scale.ticks(max(2, canvas.height // 2))
    }
    lines: list[Line] = [(Span(" " * (LABEL + 1 - len(y.title)) + y.title, "dim"),)]
    for row, drawn in enumerate(canvas.lines()):
        lines.append((Span(f"{labels.get(row, ''):>{LABEL}} {bar}", "dim"), *drawn))
    ticks = [
        (canvas.column(x.scale.share(value)), words)
        for value in x.scale.ticks(max(2, canvas.width // x.tick_cells))
        if (words := x.label(value))
    ]
    edge = [rule] * canvas.width
    for column, _ in ticks:
        edge[column] = tick
    lines.append((Span(" " * (LABEL + 1) + corner + "".join(edge), "dim"),))
    lines.append((Span(" " * (LABEL + 2) + tick_labels(ticks, canvas.width + LABEL), "dim"),))
    lines.append((Span(" " * (LABEL + 2) + x.title, "dim"),))
    return lines


def tick_labels(ticks: Iterable[tuple[int, str]], width: int) -> str:
    """Return the words of ticks, each centred below its column; words without room are left out."""
    labels = ""
    for column, words in ticks:
        start = max(0, column - len(words) // 2)
        if start >= len(labels) + bool(labels) and start + len(words) <= width:
            labels = f"{labels:<{start}}{words}"
    return labels


LABEL = 5
"""Cells of a tick label left of the y axis."""
FRAME_WIDTH, FRAME_HEIGHT = LABEL + 2, 4
"""Cells that `framed` adds to a canvas."""

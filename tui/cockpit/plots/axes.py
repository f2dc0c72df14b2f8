"""Scales with round ticks, and the frame of a canvas: axes, ticks and units."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tui.cockpit.lines import Line, Span

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
        for step in _log_steps(self.low, self.high) if self.log else _steps(self.high - self.low):
            values = step(self.low, self.high)
            if len(values) <= max(most, 1):
                return values
        return []


def covering(values: Iterable[float], *, log: bool = False) -> Scale:
    """Return a scale that shows all values with a margin at both ends; `ValueError` without values."""
    numbers = list(values)
    low, high = min(numbers), max(numbers)
    if log:
        return Scale(low / 1.5, high * 1.5, log=True)
    margin = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return Scale(low - margin, high + margin)


@dataclass(frozen=True, slots=True)
class Axis:
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


def framed(canvas: Canvas, x: Axis, y: Axis, *, ascii: bool) -> list[Line]:
    """Return the canvas with a title line, labelled axes and the title of `x` below; see `frame_size`."""
    bar, corner, rule, tick = "|+-+" if ascii else "│└─┴"
    labels = {
        round((1 - y.scale.share(value)) * (canvas.height - 1)): y.label(value)
        for value in y.scale.ticks(max(2, canvas.height // 2))
    }
    lines: list[Line] = [(Span(" " * (LABEL + 1 - len(y.title)) + y.title, "dim"),)]
    for row, drawn in enumerate(canvas.lines()):
        lines.append((Span(f"{labels.get(row, ''):>{LABEL}} {bar}", "dim"), *drawn))
    edge = [rule] * canvas.width
    below = [" "] * (canvas.width + LABEL)
    free = 0
    for value in x.scale.ticks(max(2, canvas.width // x.tick_cells)):
        column = canvas.column(x.scale.share(value))
        words = x.label(value)
        if not words:
            continue
        start = max(0, column - len(words) // 2)
        edge[column] = tick
        if start >= free and start + len(words) <= len(below):
            below[start : start + len(words)] = words
            free = start + len(words) + 1
    lines.append((Span(" " * (LABEL + 1) + corner + "".join(edge), "dim"),))
    lines.append((Span(" " * (LABEL + 2) + "".join(below).rstrip(), "dim"),))
    lines.append((Span(" " * (LABEL + 2) + x.title, "dim"),))
    return lines


LABEL = 5
"""Cells of a tick label left of the y axis."""
FRAME_WIDTH, FRAME_HEIGHT = LABEL + 2, 4
"""Cells that `framed` adds to a canvas."""

Step = Callable[[float, float], list[float]]


def _steps(reach: float) -> Iterable[Step]:
    power = 10.0 ** (math.floor(math.log10(reach)) - 1)
    while True:
        for factor in (1, 2, 5):
            yield _multiples(factor * power)
        power *= 10


def _multiples(step: float) -> Step:
    def ticks(low: float, high: float) -> list[float]:
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        return [index * step for index in range(first, last + 1)]

    return ticks


def _log_steps(low: float, high: float) -> Iterable[Step]:
    yield _decades((1, 2, 5), 1)
    yield _decades((1, 3), 1)
    for apart in range(1, 2 + math.ceil(math.log10(high / low))):
        yield _decades((1,), apart)


def _decades(factors: tuple[int, ...], apart: int) -> Step:
    def ticks(low: float, high: float) -> list[float]:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        values = (
            factor * 10.0**power
            for power in range(first, last + 1)
            if power % apart == 0
            for factor in factors
        )
        return [value for value in values if low <= value <= high]

    return ticks

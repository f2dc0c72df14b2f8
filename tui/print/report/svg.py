"""Plots of a report as SVG inside an HTML page: bars of speedups, and curves with bands."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence

from sessions.names import short_task
from tui.facts.report.bars import scale_end
from tui.facts.report.section import Curve, Plot, TimedWinner
from tui.facts.vocabulary import count, speed_style

WIDTH, HEIGHT = 640, 280
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 22, 40
COLOURS = 6
"""Colours of the page's style; further curves differ by their dashes alone."""
DASHES = ("", "6 3", "2 3", "8 3 2 3")


def bars_html(winners: Sequence[TimedWinner]) -> str:
    """Return a row for each winner with a speedup: its name, a bar on a linear scale from 0, and the figure."""
    most = scale_end([winner for winner in winners if winner.speed is not None])
    rows = [
        f"<tr><th>{html.escape(short_task(winner.task))}</th><td>{_bar(winner, most)}</td>"
        f'<td class="r {speed_style(winner.speed)}">{html.escape(winner.speed.words)}</td></tr>'
        for winner in winners
        if winner.speed is not None
    ]
    ends = f'<text x="0" y="12">0</text><text x="100%" y="12" text-anchor="end">{most:g}x</text>'
    middle = f'<text x="{100 / most:.2f}%" y="12" text-anchor="middle">1x</text>' if most < 10 else ""
    axis = f'<tr><th></th><td><svg width="100%" height="16">{ends}{middle}</svg></td><td></td></tr>'
    return f'<div class="wide"><table class="bars">{"".join(rows)}{axis}</table></div>'


def _bar(winner: TimedWinner, most: float) -> str:
    speed = winner.speed
    assert speed is not None, "only winners with a speed have a bar"

    def place(ratio: float) -> str:
        return f"{min(ratio / most, 1.0) * 100:.2f}%"

    style = speed_style(speed)
    parts = [f'<rect class="fill {style}" y="3" width="{place(speed.value)}" height="10"/>']
    if speed.sign == ">=":
        parts.append(f'<rect class="fill beyond {style}" y="3" width="100%" height="10"/>')
    parts.append(f'<line class="one" x1="{place(1)}" x2="{place(1)}" y1="0" y2="16"/>')
    if speed.interval is not None and speed.interval[1] <= most:
        low, high = map(place, speed.interval)
        ends = "".join(f'<line x1="{end}" x2="{end}" y1="5" y2="11"/>' for end in (low, high))
        parts.append(f'<line x1="{low}" x2="{high}" y1="8" y2="8"/>{ends}')
    if speed.value > most:
        parts.append('<text x="100%" y="12" text-anchor="end">//</text>')
    return f'<svg width="100%" height="16" role="img" aria-label="{speed.words}">{"".join(parts)}</svg>'


def plot_svg(plot: Plot) -> str:
    """Return a figure of the plot with its legend. A line is a step: its value holds until the next point."""
    points = [point for curve in plot.curves for point in curve.points]
    x_ticks = _ticks(0.0, max(point.x for point in points))
    y_ticks = _ticks(min(1.0, *(point.low for point in points)), max(point.high for point in points))
    x_span, y_low = x_ticks[-1], y_ticks[0]
    y_span = y_ticks[-1] - y_low

    def at(x: float, y: float) -> tuple[float, float]:
        across = LEFT + x / x_span * (WIDTH - LEFT - RIGHT)
        return across, HEIGHT - BOTTOM - (y - y_low) / y_span * (HEIGHT - TOP - BOTTOM)

    parts = []
    for tick in y_ticks:
        _, y = at(0, tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in x_ticks:
        x, _ = at(tick, y_low)
        label = count(round(tick)) if tick >= 1000 else f"{tick:g}"
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{label}</text>')
    parts.append(f'<text x="{LEFT - 6}" y="12" text-anchor="start">{html.escape(plot.y)}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">{html.escape(plot.x)}</text>')
    for number, curve in enumerate(plot.curves):
        line = [at(*corner) for corner in _steps(curve, 1)]
        if any(point.low != point.high for point in curve.points):
            band = [at(*corner) for corner in (*_steps(curve, 2), *reversed(list(_steps(curve, 3))))]
            parts.append(f'<polygon class="band" style="fill:{_colour(number)}" points="{_corners(band)}"/>')
        parts.append(f'<polyline {_stroke(number)} points="{_corners(line)}"/>')
        last = line[-1]
        parts.append(
            f'<circle cx="{last[0]:.1f}" cy="{last[1]:.1f}" r="3.5" style="fill:{_colour(number)}"/>'
        )
    label = html.escape(f"{plot.y} against {plot.x}")
    drawing = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
    legend = "".join(
        f'<span><svg viewBox="0 0 32 11"><line {_stroke(number)} x1="0" x2="32" y1="8" y2="8"/></svg>'
        f"{html.escape(curve.name)}</span>"
        for number, curve in enumerate(plot.curves)
    )
    return f"<figure>{drawing}<figcaption>{legend}</figcaption></figure>"


def _steps(curve: Curve, field: int) -> Iterator[tuple[float, float]]:
    """Yield the corners of a step line through one field of the points."""
    for number, point in enumerate(curve.points):
        if number:
            yield point.x, curve.points[number - 1][field]
        yield point.x, point[field]


def _corners(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _colour(number: int) -> str:
    return f"var(--c{number % COLOURS})"


def _stroke(number: int) -> str:
    dashes = DASHES[number % len(DASHES)]
    return f'class="curve" style="stroke:{_colour(number)}" stroke-dasharray="{dashes}"'


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers from at most `low` to at least `high`, at most seven."""
    span = (high - low) or abs(high) or 1.0
    step = 10 ** math.floor(math.log10(span / 5))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]

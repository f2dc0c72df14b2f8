"""Plots with two axes: values by number with intervals, and a roofline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tui.cockpit.draw.lines import Line, Span

from .axes import FRAME_HEIGHT, FRAME_WIDTH, PlotAxis, Scale, covering, framed, number
from .canvas import Canvas


class Point(NamedTuple):
    """A point with a mark of one character; `low` and `high` are an interval in `y`."""

    x: float
    y: float | None
    mark: str
    style: str = ""
    low: float | None = None
    high: float | None = None


def by_number(
    points: Sequence[Point],
    width: int,
    height: int,
    *,
    ascii: bool,
    y_title: str,
    x_title: str,
    reference: float | None = None,
    empty: str,
) -> list[Line]:
    """
    Return points at whole numbers with their intervals; `reference` is a horizontal line.

    The marks of points without a value stand below their numbers. Without any value the result is the words of `empty`.
    The y axis covers the values and does not begin at 0.
    """
    measured = [point for point in points if point.y is not None]
    ends = [
        end for point in measured for end in (point.y, point.low, point.high, reference) if end is not None
    ]
    if not ends:
        return [(Span(empty, "dim"),)]
    canvas = Canvas(width - FRAME_WIDTH, max(height - FRAME_HEIGHT - 1, 3), ascii=ascii)
    first, last = min(point.x for point in points), max(point.x for point in points)
    x = Scale(first - 0.5, last + 0.5)
    y = covering(ends)
    if reference is not None:
        for step in range(0, canvas.width, 2):
            canvas.dot(step / max(canvas.width - 1, 1), y.share(reference), "dim")
    for point in points:
        if point.y is None:
            continue
        across = x.share(point.x)
        if point.low is not None and point.high is not None:
            upright = canvas.centred(across)
            canvas.segment((upright, y.share(point.low)), (upright, y.share(point.high)), point.style)
        canvas.mark(across, y.share(point.y), point.mark, point.style)
    *plot, title = framed(
        canvas, PlotAxis(x, x_title, _whole, tick_cells=4), PlotAxis(y, y_title, number), ascii=ascii
    )
    without_value = Canvas(canvas.width, 1, ascii=True)
    for point in points:
        if point.y is None:
            without_value.mark(x.share(point.x), 0.0, point.mark, point.style)
    (marks,) = without_value.lines()
    return [
        *plot,
        *([(Span(" " * FRAME_WIDTH), *marks)] if any(point.y is None for point in points) else []),
        title,
    ]


def _whole(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else ""


def roofline(
    points: Sequence[Point],
    width: int,
    height: int,
    *,
    ascii: bool,
    bytes_per_s: float | None,
    flops_per_s: float | None,
    empty: str,
) -> list[Line]:
    """
    Return a log-log roofline: FLOP per byte against FLOP/s, with the roofs of memory and compute that are known.

    A cell with several points shows `*`. Points without FLOPs cannot be drawn. Without any point the result is the words
    of `empty`.
    """
    drawn = [point for point in points if point.y and point.x > 0]
    if not drawn:
        return [(Span(empty, "dim"),)]
    x = covering((point.x for point in drawn), log=True)
    x = Scale(x.low / 2, x.high * 2, log=True)
    if bytes_per_s and flops_per_s:
        x = Scale(x.low, max(x.high, min(2 * flops_per_s / bytes_per_s, 100 * x.high)), log=True)
    roof = _roof_at(x.high, bytes_per_s, flops_per_s)
    y = covering([*(point.y or 0.0 for point in drawn), *([roof] if roof else [])], log=True)
    canvas = Canvas(width - FRAME_WIDTH, max(height - FRAME_HEIGHT, 3), ascii=ascii)
    if roof:
        _draw_roof(canvas, x, y, bytes_per_s, flops_per_s)
    for point in drawn:
        canvas.mark(x.share(point.x), y.share(point.y or 0.0), point.mark, point.style)
    title = "FLOP per byte (both axes logarithmic)"
    return framed(canvas, PlotAxis(x, title, number), PlotAxis(y, "FLOP/s", number), ascii=ascii)


def _roof_at(intensity: float, bytes_per_s: float | None, flops_per_s: float | None) -> float | None:
    memory = bytes_per_s * intensity if bytes_per_s else None
    limits = [limit for limit in (memory, flops_per_s) if limit]
    return min(limits, default=None)


def _draw_roof(
    canvas: Canvas, x: Scale, y: Scale, bytes_per_s: float | None, flops_per_s: float | None
) -> None:
    steps = canvas.width * 4
    for step in range(steps + 1):
        intensity = x.low * (x.high / x.low) ** (step / steps)
        roof = _roof_at(intensity, bytes_per_s, flops_per_s)
        if roof:
            canvas.dot(step / steps, y.share(roof), "dim")

"""Values with their intervals on one horizontal scale, a line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tui.cockpit.lines import Line, Span, fit

from .axes import covering


class Interval(NamedTuple):
    """One line of `interval_rows`; without a value, `words` says why."""

    label: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    words: str = ""
    """Behind the interval: the figures."""
    style: str = ""


def interval_rows(
    rows: Sequence[Interval],
    width: int,
    *,
    ascii: bool,
    axis: str,
    label: Callable[[float], str],
    reference: float | None = None,
) -> list[Line]:
    """
    Return one line a row, and below them the scale with the words of `axis`.

    The scale covers all intervals and `reference`, which is a vertical line. It does not begin at 0, and says so.
    """
    ends = [
        number for row in rows for number in (row.low, row.value, row.high, reference) if number is not None
    ]
    label_width = max((len(row.label) for row in rows), default=0)
    if not any(row.value is not None for row in rows):
        return [_without_value(row, label_width) for row in rows]
    words_width = max(len(row.words) for row in rows if row.value is not None)
    room = max(width - label_width - words_width - 6, 12)
    scale = covering(ends)

    def place(value: float) -> int:
        return round(scale.share(value) * (room - 1))

    left, rule, right, point, upright = ("|", "-", "|", "*", ":") if ascii else ("├", "─", "┤", "●", "┊")
    lines: list[Line] = []
    for row in rows:
        if row.value is None:
            lines.append(_without_value(row, label_width))
            continue
        cells = [" "] * room
        if reference is not None:
            cells[place(reference)] = upright
        if row.low is not None and row.high is not None:
            first, last = place(row.low), place(row.high)
            cells[first : last + 1] = rule * (last + 1 - first)
            cells[first], cells[last] = left, right
        cells[place(row.value)] = point
        lines.append(
            (
                Span(f"  {fit(row.label, label_width)}  "),
                Span("".join(cells), row.style),
                Span(f"  {row.words}", "dim"),
            )
        )
    return [*lines, *_scale_lines(scale.ticks(max(2, room // 12)), place, label, room, label_width, axis)]


def _without_value(row: Interval, label_width: int) -> Line:
    return Span(f"  {fit(row.label, label_width)}  "), Span(row.words, row.style or "dim")


def _scale_lines(
    ticks: Sequence[float],
    place: Callable[[float], int],
    label: Callable[[float], str],
    room: int,
    label_width: int,
    axis: str,
) -> list[Line]:
    labels = [" "] * (room + 8)
    free = 0
    for tick in ticks:
        words = label(tick)
        start = max(0, place(tick) - len(words) // 2)
        if start >= free and start + len(words) <= len(labels):
            labels[start : start + len(words)] = words
            free = start + len(words) + 1
    indent = " " * (label_width + 4)
    return [
        (Span(indent + "".join(labels).rstrip(), "dim"),),
        (Span(f"{indent}{axis}; the scale is not from 0", "dim"),),
    ]

"""Plots as lines of text: shares of a roof, intervals, a best value over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, groupby, zip_longest
from typing import NamedTuple

from tui.cockpit.draw.lines import Line, Span, fit

BASELINE, ATTEMPT, BOTH = "o", "#", "@"
"""Marks of the two sides of a share bar; `BOTH` if they fall on one cell."""
POINT = "●"


class ShareBar(NamedTuple):
    """One case of `share_bars`: shares of 1, `None` if unknown."""

    label: str
    baseline: float | None
    attempt: float | None
    style: str = ""
    """Style of the attempt's mark."""
    words: str = ""
    """Why there is no share; drawn in place of the bar."""


def share_bars(bars: Sequence[ShareBar], width: int) -> list[Line]:
    """
    Return one line a case: both shares between 0 and the roof, which is at 100 %.

    A share above 100 % lies behind the roof; the scale is the same for all cases.
    """
    label_width = max((len(bar.label) for bar in bars), default=0)
    shares = [share for bar in bars for share in (bar.baseline, bar.attempt) if share is not None]
    most = max([1.0, *shares])
    room = width - label_width - len("    0 | 100 %")
    figures = room >= 60
    room -= FIGURES if figures else 0
    return [_share_bar(bar, label_width, room, most, figures=figures) for bar in bars]


FIGURES = len("  this 100 %  baseline 100 %")


def _share_bar(bar: ShareBar, label_width: int, room: int, most: float, *, figures: bool) -> Line:
    head = Span(f"  {bar.label:<{label_width}}  ")
    if bar.attempt is None and bar.baseline is None:
        return head, Span(bar.words or "not known", "dim")
    room = max(room, 10)
    roof = round(room / most)
    cells = [Span("·", "dim") for _ in range(roof)]
    cells.append(Span("│", "dim"))
    cells += [Span(" ")] * (room - roof)
    places: dict[int, Span] = {}
    for share, mark, style in ((bar.baseline, BASELINE, ""), (bar.attempt, ATTEMPT, bar.style)):
        if share is None:
            continue
        place = min(int(share * roof), room) if share >= 1.005 else min(int(share * roof), roof - 1)
        places[place] = Span(BOTH if place in places else mark, style)
    for place, span in places.items():
        cells[place] = span
    words = " 100 %"
    if figures:
        words += f"  this {_percent(bar.attempt)}  baseline {_percent(bar.baseline)}"
    return head, Span("0 ", "dim"), *_grouped(cells), Span(words, "dim")


def _percent(share: float | None) -> str:
    return "    -" if share is None else f"{share:4.0%}".replace("%", " %")


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
    least, most = min(ends), max(ends)
    margin = (most - least) * 0.05 or abs(most) * 0.05 or 1.0
    low, high = least - margin, most + margin

    def place(value: float) -> int:
        return round((value - low) / (high - low) * (room - 1))

    lines: list[Line] = []
    for row in rows:
        if row.value is None:
            lines.append(_without_value(row, label_width))
            continue
        cells = [" "] * room
        if reference is not None:
            cells[place(reference)] = "┊"
        if row.low is not None and row.high is not None:
            first, last = place(row.low), place(row.high)
            cells[first : last + 1] = "─" * (last + 1 - first)
            cells[first], cells[last] = "├", "┤"
        cells[place(row.value)] = POINT
        lines.append(
            (
                Span(f"  {fit(row.label, label_width)}  "),
                Span("".join(cells), row.style),
                Span(f"  {row.words}", "dim"),
            )
        )
    indent = " " * (label_width + 4)
    ticks = [(place(tick), label(tick)) for tick in round_values(low, high, max(2, room // 12))]
    lines.append((Span(indent + tick_labels(ticks, room + 8), "dim"),))
    return [*lines, (Span(f"{indent}{axis}; the scale is not from 0", "dim"),)]


def _without_value(row: Interval, label_width: int) -> Line:
    return Span(f"  {fit(row.label, label_width)}  "), Span(row.words, row.style or "dim")


class Moment(NamedTuple):
    """One value of `best_line`."""

    at: float
    """Its place on the horizontal axis, of 0 to 1."""
    value: float
    words: str
    """Drawn beside it if it became the best."""
    style: str = ""
    is_best: bool = False
    """True if it became the best."""


def best_line(moments: Sequence[Moment], width: int, height: int) -> list[Line]:
    """
    Return `height` lines with the best value so far as a line of steps, and a `·` for each other value.

    `moments` are in order, and one of them is a best. The scale covers all values and does not begin at 0.
    """
    values = [moment.value for moment in moments]
    low, most = min(values), max(values)
    labels = [f"{most:.2f}x", *[""] * (height - 2), f"{low:.2f}x" if low < most else ""]
    margin = max(map(len, labels)) + 1
    room = width - margin - max(len(moment.words) for moment in moments) - 2
    grid = [[Span(" ")] * (width - margin) for _ in range(height)]

    def place_of(moment: Moment) -> tuple[int, int]:
        """Return its row and column."""
        share = (most - moment.value) / ((most - low) or 1.0)
        return round(share * (height - 1)), round(moment.at * (room - 1))

    for moment in moments:
        row, column = place_of(moment)
        grid[row][column] = Span("·", "dim")
    bests = [moment for moment in moments if moment.is_best]
    for moment, following in zip_longest(bests, bests[1:]):
        row, column = place_of(moment)
        after, end = (row, room) if following is None else place_of(following)
        grid[row][column:end] = [Span("─", moment.style)] * (end - column)
        for between in range(min(row, after), max(row, after) + 1) if following else ():
            grid[between][end] = Span("│", "dim")
        grid[row][column] = Span(POINT, moment.style)
        start = column + 2 if end - column > len(moment.words) + 2 else end + 2
        words = [Span(letter) for letter in f"{moment.words} "]
        grid[row][start : start + len(words)] = words
    return [
        (Span(f"{label:>{margin - 1}} ", "dim"), *_grouped(cells[: width - margin]))
        for label, cells in zip(labels, grid, strict=True)
    ]


def _grouped(cells: Iterable[Span]) -> Iterator[Span]:
    """Yield the cells with neighbours of one style joined."""
    for style, group in groupby(cells, lambda span: span.style):
        yield Span("".join(span.text for span in group), style)


def round_values(low: float, high: float, most: int) -> list[float]:
    """Return at most `most` round values from `low` to `high`."""
    power = math.floor(math.log10(high - low)) - 1
    for step in (factor * 10.0**exponent for exponent in count(power) for factor in (1, 2, 5)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            return [index * step for index in range(first, last + 1)]
    raise AssertionError("a step is large enough at last")


def tick_labels(ticks: Iterable[tuple[int, str]], width: int) -> str:
    """Return the words of ticks, each centred below its column; words without room are left out."""
    labels = ""
    for column, words in ticks:
        start = max(0, column - len(words) // 2)
        if start >= len(labels) + bool(labels) and start + len(words) <= width:
            labels = f"{labels:<{start}}{words}"
    return labels

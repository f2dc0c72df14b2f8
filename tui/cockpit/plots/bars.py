"""Horizontal bars: shares of a roof, and parts of a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tui.cockpit.lines import Line, Span, fit

from .axes import number

BASELINE, ATTEMPT, BOTH = "o", "#", "@"
"""Marks of the two sides of a share bar; `BOTH` if they fall on one cell."""


class Bar(NamedTuple):
    """One case of `share_bars`: shares of 1, `None` if unknown."""

    label: str
    baseline: float | None
    attempt: float | None
    style: str = ""
    """Style of the attempt's mark."""
    words: str = ""
    """Why there is no share; drawn in place of the bar."""


def share_bars(bars: Sequence[Bar], width: int, *, ascii: bool) -> list[Line]:
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
    return [_share_bar(bar, label_width, room, most, ascii=ascii, figures=figures) for bar in bars]


FIGURES = len("  this 100 %  baseline 100 %")


def _share_bar(bar: Bar, label_width: int, room: int, most: float, *, ascii: bool, figures: bool) -> Line:
    head = Span(f"  {bar.label:<{label_width}}  ")
    if bar.attempt is None and bar.baseline is None:
        return head, Span(bar.words or "not known", "dim")
    room = max(room, 10)
    roof = round(room / most)
    cells = [Span("." if ascii else "·", "dim") for _ in range(roof)]
    cells.append(Span("|" if ascii else "│", "dim"))
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
    return head, Span("0 ", "dim"), *_joined(cells), Span(words, "dim")


def _percent(share: float | None) -> str:
    return "    -" if share is None else f"{share:4.0%}".replace("%", " %")


def time_bars(
    parts: Sequence[tuple[str, float]], width: int, *, ascii: bool, unit: str = "us", style: str = ""
) -> list[Line]:
    """Return one line a part of a time, with its value, its share of the sum and a bar; without parts, nothing."""
    total = sum(value for _, value in parts)
    if not parts or total <= 0:
        return []
    label_width = min(max(len(label) for label, _ in parts), max(width // 3, 8))
    room = max(width - label_width - len("    1234 us  100 %  "), 8)
    full = "#" if ascii else "█"
    return [
        (
            Span(f"  {fit(label, label_width)}  "),
            Span(f"{number(value):>6} {unit}  {round(100 * value / total):3} %  "),
            Span(full * round(room * value / total), style or "dim"),
        )
        for label, value in parts
    ]


def _joined(spans: Sequence[Span]) -> Line:
    joined: list[Span] = []
    for span in spans:
        if joined and joined[-1].style == span.style:
            joined[-1] = Span(joined[-1].text + span.text, span.style)
        else:
            joined.append(span)
    return tuple(joined)

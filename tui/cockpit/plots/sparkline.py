"""A row of small bars: the course of a value in a few cells."""

from __future__ import annotations

from collections.abc import Sequence

from tui.cockpit.lines import Line, Span

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII_LEVELS = "_.-=+*#@"
GAP = "·"


def sparkline(
    values: Sequence[float | None],
    width: int,
    *,
    ascii: bool,
    low: float | None = None,
    high: float | None = None,
    style: str = "",
) -> Line:
    """
    Return the newest `width` values as small bars, the newest at the right end.

    `low` and `high` are the ends of the scale, by default those of the values. An unknown value is a dot, or a blank in
    ASCII. Without a known value the line is empty.
    """
    shown = list(values)[-width:] if width > 0 else []
    known = [value for value in shown if value is not None]
    if not known:
        return ()
    levels = ASCII_LEVELS if ascii else BLOCKS
    bottom = min(known) if low is None else low
    reach = (max(known) if high is None else high) - bottom
    text = "".join(
        (" " if ascii else GAP) if value is None else levels[_level(value - bottom, reach, len(levels))]
        for value in shown
    )
    return (Span(text, style),)


def _level(above: float, reach: float, levels: int) -> int:
    if reach <= 0:
        return 0
    return min(max(int(above / reach * levels), 0), levels - 1)

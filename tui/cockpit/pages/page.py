"""Parts of a page: lines, links to lines of the candidate, tables and wrapped text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sessions.state.state import AttemptState, InstanceState
from tui.cockpit.grid import heading, places, row_line
from tui.cockpit.lines import Line, clean, line, wrap
from tui.tables import Column, Row


class Page(NamedTuple):
    """Lines, and where some of them lead."""

    lines: list[Line]
    links: Sequence[tuple[int, int]] = ()
    """(index of the line, 1-based line of the candidate)."""


class PageSubject(NamedTuple):
    """The attempt that a page is about, with what the page compares it with."""

    attempt: AttemptState
    instance: InstanceState | None = None
    base: AttemptState | None = None
    """The attempt that it was made from."""
    shapes: Mapping[str, str] = {}
    """Sizes on a GPU by case: `8192x4097`; empty if the task is not known here."""
    pinned: bool = False
    """True if the first lines of the verdict are on screen above the page."""


def table(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[Line]:
    """Return a whole table as lines."""
    placed = places(columns, rows, width)
    return [heading(columns, placed), *(row_line(columns, placed, row) for row in rows)]


def paragraph(text: str, width: int, style: str = "", *, indent: int = 0) -> list[Line]:
    """Return text from outside as wrapped lines, safe to draw; nothing for an empty text."""
    if not text:
        return []
    return [line(" " * indent + row, style) for row in wrap(clean(text), width - indent)]

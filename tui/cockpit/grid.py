"""Tables as plain data, and which columns fit into how many cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len

from tui.cockpit.lines import Line, Span, fit

GAP = 2
"""Cells between columns."""
UNKNOWN = frozenset({"", "-", "not visible"})
"""What a cell says when nothing is known."""


class Cell(NamedTuple):
    """One value in one style."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    title: str
    least: int
    """Narrowest width in cells that is still of use."""
    most: int
    """Widest; between the two the contents decide, so give both the same where contents change all the time."""
    right: bool = False
    drop: int = 0
    """Columns with the highest number go first when space is short; 0 never goes."""
    if_known: bool = False
    """Stands only while a row knows something for it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row; `key` says which thing it is about."""

    key: str
    cells: tuple[Cell, ...]
    style: str = ""
    """Laid under every cell."""


class Place(NamedTuple):
    """Where a column stands."""

    column: int
    x: int
    width: int


def places(columns: Sequence[Column], rows: Sequence[Row], width: int) -> tuple[Place, ...]:
    """The columns that fit into `width` cells, with the space they get."""
    wanted = [
        min(
            max([column.least, cell_len(column.title), *(cell_len(row.cells[index].text) for row in rows)]),
            column.most,
        )
        for index, column in enumerate(columns)
    ]
    kept = [
        index
        for index, column in enumerate(columns)
        if not column.if_known or any(row.cells[index].text not in UNKNOWN for row in rows)
    ]
    while droppable := [i for i in kept if columns[i].drop]:
        # What never goes is not cut either while something else can go.
        needed = sum(columns[i].least if columns[i].drop else wanted[i] for i in kept)
        if needed + GAP * (len(kept) - 1) <= width:
            break
        kept.remove(max(droppable, key=lambda i: (columns[i].drop, i)))
    given = {i: columns[i].least for i in kept}
    spare = width - sum(given.values()) - GAP * (len(kept) - 1)
    for i in kept:
        more = max(0, min(spare, wanted[i] - given[i]))
        given[i] += more
        spare -= more
    x = 0
    placed: list[Place] = []
    for i in kept:
        room = min(given[i], width - x)
        if room <= 0:
            break
        placed.append(Place(i, x, room))
        x += given[i] + GAP
    return tuple(placed)


def heading(columns: Sequence[Column], placed: Sequence[Place]) -> Line:
    """The row of titles."""
    cells = tuple(Cell(column.title) for column in columns)
    return row_line(columns, placed, Row("", cells, "head"))


def row_line(columns: Sequence[Column], placed: Sequence[Place], row: Row) -> Line:
    """One row as a line."""
    spans: list[Span] = []
    x = 0
    for place in placed:
        if place.x > x:
            spans.append(Span(" " * (place.x - x), row.style))
        cell = row.cells[place.column]
        text = fit(cell.text, place.width, right=columns[place.column].right)
        spans.append(Span(text, f"{row.style} {cell.style}".strip()))
        x = place.x + place.width
    return tuple(spans)

"""Tables as lines of the cockpit: one row is one line, and what does not fit is cut."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tui.cockpit.draw.lines import Line, Span, fit
from tui.facts.tables import GAP, Cell, Column, PlacedColumn, Row, lay_out


def places(
    columns: Sequence[Column],
    rows: Sequence[Row],
    width: int,
    only: Collection[str] | None = None,
    gap: int = GAP,
) -> tuple[PlacedColumn, ...]:
    """Return the columns that fit into `width` cells; the last of them is cut at the edge."""
    laid_out = lay_out(columns, [[cell.text for cell in row.cells] for row in rows], width, only, gap)
    return tuple(
        place._replace(width=min(place.width, width - place.x)) for place in laid_out if place.x < width
    )


def heading(columns: Sequence[Column], placed: Sequence[PlacedColumn]) -> Line:
    """The row of titles."""
    cells = tuple(Cell(column.title) for column in columns)
    return row_line(columns, placed, Row("", cells, "head"))


def row_line(columns: Sequence[Column], placed: Sequence[PlacedColumn], row: Row) -> Line:
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

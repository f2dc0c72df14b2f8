"""Tables as lines of the cockpit: one row is one line, and what does not fit is cut."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.cells import cell_len

from tui.cockpit.draw.lines import Line, Span, fit, shorten
from tui.facts.tables import Cell, Column, PlacedColumn, Row, lay_out


def places(
    columns: Sequence[Column],
    rows: Sequence[Row],
    width: int,
    only: Collection[str] | None = None,
    at: int = 0,
) -> tuple[PlacedColumn, ...]:
    """Return the columns that fit into `width` cells; the last of them is cut at the edge."""
    texts = [[cell.text for cell in row.cells] for row in rows if len(row.cells) >= len(columns)]
    laid_out = lay_out(columns, texts, width, only, at)
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
    last = len(row.cells) - 1
    for place in placed:
        if place.column > last:
            break
        if place.x > x:
            spans.append(Span(" " * (place.x - x), row.style))
        cell = row.cells[place.column]
        is_wide = place.column == last < len(columns) - 1
        space = place.width - cell_len(cell.text)
        if is_wide or (cell.pieces and space >= 0):
            pieces = cell.pieces or ((cell.text, cell.style),)
            spans += [Span(text, f"{row.style} {style}".strip()) for text, style in pieces]
            spans += [Span(" " * space, row.style)] if space > 0 else []
        else:
            column = columns[place.column]
            text = shorten(cell.text, place.width) if column.inner_cut else cell.text
            text = fit(text, place.width, right=column.right)
            spans.append(Span(text, f"{row.style} {cell.style}".strip()))
        x = place.x + place.width
    return tuple(spans)

"""Tables and texts as lines: in a grid a row is one line, and what does not fit is cut; on a page it is folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from rich.cells import cell_len

from tui.cockpit.draw.lines import EMPTY, Line, Span, clean, fit, line, shorten, wrap
from tui.facts.tables import Cell, Column, PlacedColumn, Row, Table, lay_out


def places(
    columns: Sequence[Column],
    rows: Sequence[Row],
    width: int,
    at: int = 0,
) -> tuple[PlacedColumn, ...]:
    """Return the columns that fit into `width` cells; the last of them is cut at the edge."""
    texts = [[cell.text for cell in row.cells] for row in rows if len(row.cells) >= len(columns)]
    laid_out = lay_out(columns, texts, width, at)
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


def spaced(blocks: Iterable[Sequence[Line]]) -> list[Line]:
    """Return blocks of lines with an empty line between two; empty blocks are left out."""
    lines: list[Line] = []
    for block in blocks:
        if block:
            lines += [EMPTY, *block] if lines else block
    return lines


def tables_lines(tables: Iterable[Table], width: int) -> list[Line]:
    """Return tables with titles and sentences, an empty line between two; those without content are left out."""
    return spaced(table_lines(shown, width) for shown in tables if shown.has_content)


def table_lines(shown: Table, width: int) -> list[Line]:
    """Return a table with its title and sentences. Words that do not fit into their column are folded."""
    lines = paragraph(shown.title, width, "head")
    if shown.rows:
        placed = places(shown.columns, shown.rows, width)
        if any(column.title for column in shown.columns):
            lines.append(heading(shown.columns, placed))
        lines += [line for row in shown.rows for line in _row_lines(shown.columns, placed, row)]
    return lines + [line for text, style, *_ in shown.sentences for line in paragraph(text, width, style)]


def _row_lines(columns: Sequence[Column], placed: Sequence[PlacedColumn], row: Row) -> Iterator[Line]:
    folded = [wrap(clean(row.cells[place.column].text), place.width) for place in placed]
    for texts in zip_longest(*folded, fillvalue=""):
        cells = list(row.cells)
        for place, text in zip(placed, texts, strict=True):
            cells[place.column] = cells[place.column]._replace(text=text)
        yield row_line(columns, placed, replace(row, cells=tuple(cells)))


def paragraph(text: str, width: int, style: str = "") -> list[Line]:
    """Return text from outside as wrapped lines, safe to draw; nothing for an empty text."""
    if not text:
        return []
    return [line(row, style) for row in wrap(clean(text), width)]

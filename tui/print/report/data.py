"""A report for programs: JSON and CSV with unrounded numbers."""

from __future__ import annotations

from tui.facts.report import Section
from tui.facts.report.document import Document
from tui.facts.tables import NOTHING, Cell
from tui.print.plain import csv_page


def as_csv(document: Document) -> str:
    """Return a document of one table as CSV; an unknown value is an empty cell."""
    (section,) = document.sections
    columns, rows = section.printed_cells()
    return csv_page([column.title for column in columns], [list(map(_value, row)) for row in rows])


def document_data(document: Document) -> dict[str, object]:
    """Return a report for JSON, with one table or with all: facts, and every section with rows."""
    return {
        "schema": 3,
        "title": document.title,
        "facts": document.facts,
        "tables": [_table_data(section) for section in document.sections if section.rows],
    }


def _table_data(section: Section) -> dict[str, object]:
    columns, rows = section.printed_cells()
    titles = [column.title for column in columns]
    return {
        "table": section.name,
        "title": section.title,
        "notes": section.sentences,
        "rows": [dict(zip(titles, map(_value, row), strict=True)) for row in rows],
    }


def _value(cell: Cell) -> float | str | None:
    """Return the number of a cell, else its text; `None` if it is unknown."""
    return cell.value if cell.value is not None else None if cell.text in NOTHING else cell.text

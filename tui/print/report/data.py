"""A report for programs: JSON and CSV with unrounded numbers."""

from __future__ import annotations

import msgspec

from tui.facts.report import Section
from tui.facts.report.document import Document
from tui.facts.report.metrics import TaskMetrics
from tui.facts.tables import NOTHING, Cell
from tui.print.plain import csv_page


def metrics_csv(document: Document) -> str:
    """Return every metric of every task as CSV; an unknown value is an empty cell."""
    return csv_page(TaskMetrics.__struct_fields__, map(msgspec.structs.astuple, document.metrics))


def document_data(document: Document) -> dict[str, object]:
    """Return a report for JSON: facts, the metrics by task, and every section with rows."""
    return {
        "schema": 1,
        "title": document.title,
        "facts": document.facts,
        "metrics": document.metrics,
        "tables": [table_data(section) for section in document.sections if section.rows],
    }


def table_csv(section: Section) -> str:
    """Return one table as CSV; an unknown value is an empty cell."""
    columns, rows = section.printed_cells()
    return csv_page([column.title for column in columns], [list(map(value_of, row)) for row in rows])


def table_data(section: Section) -> dict[str, object]:
    """Return one table for JSON; an unknown value is null."""
    columns, rows = section.printed_cells()
    titles = [column.title for column in columns]
    return {
        "table": section.name,
        "title": section.title,
        "notes": section.sentences,
        "rows": [dict(zip(titles, map(value_of, row), strict=True)) for row in rows],
    }


def value_of(cell: Cell) -> float | str | None:
    """Return the number of a cell, else its text; `None` if it is unknown."""
    return cell.value if cell.value is not None else None if cell.text in NOTHING else cell.text

"""Reports in every format: each shows the same sections, with the same cells, in the same order."""

from __future__ import annotations

from collections.abc import Callable

from tui.facts.report.document import Document

from .data import document_data, metrics_csv, table_csv, table_data
from .html import as_html
from .latex import as_latex
from .markdown import as_markdown, as_text

PAGES: dict[str, Callable[[Document], str]] = {
    "table": as_text,
    "md": as_markdown,
    "tex": as_latex,
    "html": as_html,
    "csv": metrics_csv,
}

__all__ = [
    "PAGES",
    "as_html",
    "as_latex",
    "as_markdown",
    "as_text",
    "document_data",
    "metrics_csv",
    "table_csv",
    "table_data",
]

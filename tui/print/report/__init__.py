"""Reports in every format: each shows the same sections, with the same cells, in the same order."""

from __future__ import annotations

from collections.abc import Callable

from tui.facts.report.document import Document

from .data import as_csv, document_data
from .latex import as_latex
from .page import as_html
from .plots import draw, plots_of
from .text import as_markdown, as_text

PAGES: dict[str, Callable[[Document], str]] = {
    "table": as_text,
    "md": as_markdown,
    "tex": as_latex,
    "html": as_html,
    "csv": as_csv,
}

__all__ = [
    "PAGES",
    "as_csv",
    "as_html",
    "as_latex",
    "as_markdown",
    "as_text",
    "document_data",
    "draw",
    "plots_of",
]

"""The report of a session: what is faster, where, by how much, and why. Pure values and text, without a screen."""

from __future__ import annotations

from .building import report_of
from .model import SessionReport
from .texts import as_html, as_markdown, as_text

__all__ = ["SessionReport", "as_html", "as_markdown", "as_text", "report_of"]

"""The report of a session: what is faster, where, by how much, and why, as plain values and sections."""

from __future__ import annotations

from .model import SessionReport, report_of
from .panes import PANES, facts_of, sections_of
from .section import Section

__all__ = ["PANES", "Section", "SessionReport", "facts_of", "report_of", "sections_of"]

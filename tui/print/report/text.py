"""A report as plain text for a terminal."""

from __future__ import annotations

from tui.facts.report import Section
from tui.facts.report.bars import bar_lines
from tui.facts.report.document import Document
from tui.print.plain import indented, table, wrapped

BAR_CELLS = 24


def as_text(document: Document) -> str:
    """Return a report as plain text."""
    width = max(map(len, document.facts), default=0)
    head = "\n".join(f"{name:<{width}}  {value}" for name, value in document.facts.items())
    blocks = [wrapped(head)] if head else []
    return "\n\n".join([*blocks, *map(section_text, document.sections)])


def section_text(section: Section) -> str:
    """Return a section as plain text for a terminal."""
    parts = [
        section.title,
        *(wrapped(indented(sentence)) for sentence in section.sentences),
        *(f"  {line}" for line in bar_lines(section.bars, BAR_CELLS)),
        *([table(*section.printed(), indent=2)] if section.rows else []),
    ]
    return "\n".join(parts)

"""A report in GitHub's Markdown."""

from __future__ import annotations

from tui.facts.report import Section
from tui.facts.report.bars import bar_lines
from tui.facts.report.document import Document
from tui.print.markdown_text import facts_list, inline, markdown_table, paragraph

from .text import BAR_CELLS


def as_markdown(document: Document) -> str:
    """Return a report in Markdown."""
    facts = facts_list(document.facts.items())
    head = [f"# {inline(document.title)}", facts] if facts else []
    return "\n\n".join([*head, *map(section_markdown, document.sections)])


def section_markdown(section: Section) -> str:
    """Return a section in GitHub's Markdown."""
    parts = [f"## {inline(section.title)}", *map(paragraph, section.sentences)]
    if section.bars:
        parts.append("\n".join(["```text", *bar_lines(section.bars, BAR_CELLS), "```"]))
    if section.rows:
        parts.append(markdown_table(*section.printed()))
    return "\n\n".join(parts)

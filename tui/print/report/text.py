"""A report as plain text, and in GitHub's Markdown. Both need no package beyond Wavedeck's own."""

from __future__ import annotations

from tui.facts.report import Section
from tui.facts.report.document import Document
from tui.print.markdown_text import facts_list, inline, markdown_table, paragraph
from tui.print.plain import indented, table, wrapped


def as_markdown(document: Document) -> str:
    """Return a report in Markdown."""
    facts = facts_list(document.facts.items())
    head = [f"# {inline(document.title)}", facts] if facts else []
    return "\n\n".join([*head, *map(_section_markdown, document.sections)])


def _section_markdown(section: Section) -> str:
    parts = [f"## {inline(section.title)}", *map(paragraph, section.sentences)]
    if section.rows:
        parts.append(markdown_table(*section.printed()))
    return "\n\n".join(parts)


def as_text(document: Document) -> str:
    """Return a report as plain text for a terminal."""
    width = max(map(len, document.facts), default=0)
    head = "\n".join(f"{name:<{width}}  {value}" for name, value in document.facts.items())
    blocks = [wrapped(head)] if head else []
    return "\n\n".join([*blocks, *map(_section_text, document.sections)])


def _section_text(section: Section) -> str:
    parts = [
        section.title,
        *(wrapped(indented(sentence)) for sentence in section.sentences),
        *([table(*section.printed(), indent=2)] if section.rows else []),
    ]
    return "\n".join(parts)

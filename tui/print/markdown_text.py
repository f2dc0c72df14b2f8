"""Facts and tables in GitHub's Markdown. The words of models and candidates are in it, but never as its markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from engine.prompting.markdown import fenced
from tui.facts.tables import Column, Table, known_cells

_INLINE = re.compile(
    r"""\\(?=[!-/:-@[-`{-~]) | <(?=[A-Za-z/!?]) | \](?=[\[(:]) | (?<=[a-z]):(?=//) | (?<=www)\.""",
    re.VERBOSE | re.IGNORECASE,
)
"""The first character of an escape, HTML, the target of a link or image, and a bare address. Emphasis and code stay."""
_BLOCK = re.compile(r"[#>|~=_*+-]|```|\d+[.)]")
"""Beginnings of a heading, quotation, table, fence, rule or list."""


def inline(text: str) -> str:
    """Return a text on one line that loads nothing and has no HTML and no link."""
    return _INLINE.sub(r"\\\g<0>", " ".join(text.split()))


def paragraph(text: str) -> str:
    """Return a text as a paragraph of one line; several lines become a code block."""
    if "\n" in text.strip():
        return fenced(text)
    line = inline(text)
    begins = _BLOCK.match(line)
    return line if begins is None else f"{line[: begins.end() - 1]}\\{line[begins.end() - 1 :]}"


def facts_list(facts: Iterable[tuple[str, str]]) -> str:
    """Return the facts that have a value as a list."""
    return "\n".join(f"- {name}: {inline(value)}" for name, value in facts if value)


def markdown_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    lines = [
        _row(column.title for column in columns),
        "|" + "|".join("---:" if column.right else "---" for column in columns) + "|",
        *map(_row, rows),
    ]
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(inline(cell).replace("|", "\\|") for cell in cells) + " |"


def tables_markdown(tables: Iterable[Table], *, level: int = 2) -> str:
    """Return tables with their sentences; a title is a heading of this level."""
    return "\n\n".join(_table_markdown(shown, level) for shown in tables if shown.has_content)


def _table_markdown(shown: Table, level: int) -> str:
    parts = [f"{'#' * level} {inline(shown.title)}"] if shown.title else []
    if shown.rows:
        columns, rows = known_cells(shown.columns, shown.rows)
        parts.append(markdown_table(columns, [[cell.text for cell in row] for row in rows]))
    parts += [paragraph(sentence.text) for sentence in shown.sentences]
    return "\n\n".join(parts)

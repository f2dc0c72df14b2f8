"""Reports as plain text, Markdown and HTML: the same sections in the same order."""

from __future__ import annotations

import html
from collections.abc import Sequence

import msgspec

from tui.facts.report import Section, SessionReport, facts_of, merged_section, sections_of
from tui.facts.report.bars import bar_lines
from tui.facts.report.metrics import TaskMetrics
from tui.print.plain import csv_page, indented, markdown_table, table, wrapped

BAR_CELLS = 24
RIGHT = ' class="r"'
STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:75em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;margin:.5em 0}"
    "th,td{padding:.15em .7em;border-bottom:1px solid #8884;text-align:left;vertical-align:top}"
    ".r{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    "pre{line-height:1.2;overflow-x:auto}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}"
)


def as_text(reports: Sequence[SessionReport]) -> str:
    """Return the reports as plain text for a terminal."""
    blocks = []
    for report in reports:
        facts = facts_of(report)
        width = max(map(len, facts))
        head = "\n".join(f"{name:<{width}}  {value}" for name, value in facts.items())
        blocks.append("\n\n".join([wrapped(head), *map(section_text, sections_of(report))]))
    return "\n\n\n".join([*blocks, *map(section_text, _merged(reports))])


def section_text(section: Section) -> str:
    """Return a section as plain text for a terminal."""
    parts = [
        section.title,
        *(wrapped(indented(sentence)) for sentence in section.sentences),
        *(f"  {line}" for line in bar_lines(section.bars, BAR_CELLS)),
        *([table(*section.printed(), indent=2)] if section.rows else []),
    ]
    return "\n".join(parts)


def as_markdown(reports: Sequence[SessionReport]) -> str:
    """Return the reports in GitHub's Markdown."""
    blocks = []
    for report in reports:
        facts = "\n".join(f"- {name}: {value}" for name, value in facts_of(report).items())
        blocks += [f"# {report.session}", facts, *map(section_markdown, sections_of(report))]
    return "\n\n".join([*blocks, *map(section_markdown, _merged(reports))])


def section_markdown(section: Section) -> str:
    """Return a section in GitHub's Markdown."""
    parts = [f"## {section.title}", *section.sentences]
    if section.bars:
        parts.append("\n".join(["```text", *bar_lines(section.bars, BAR_CELLS), "```"]))
    if section.rows:
        parts.append(markdown_table(*section.printed()))
    return "\n\n".join(parts)


def as_html(reports: Sequence[SessionReport]) -> str:
    """Return the reports as one page of HTML without scripts and without references to other files."""
    names = ", ".join(report.session for report in reports)
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8">{_element("title", names)}',
        f"<style>{STYLE}</style></head><body>",
    ]
    for report in reports:
        facts = (
            _row(_element("th", name), _element("td", value)) for name, value in facts_of(report).items()
        )
        parts += [_element("h1", report.session), f"<table>{''.join(facts)}</table>"]
        parts += map(_section_html, sections_of(report))
    return "\n".join([*parts, *map(_section_html, _merged(reports)), "</body></html>"])


def _section_html(section: Section) -> str:
    parts = [_element("h2", section.title), *(_element("p", sentence) for sentence in section.sentences)]
    if section.bars:
        parts.append(_element("pre", "\n".join(bar_lines(section.bars, BAR_CELLS))))
    if section.rows:
        columns, rows = section.printed()
        head = _row(*(_element("th", column.title, right=column.right) for column in columns))
        body = (
            _row(
                *(_element("td", cell, right=column.right) for cell, column in zip(row, columns, strict=True))
            )
            for row in rows
        )
        parts.append("\n".join([f"<table>{head}", *body, "</table>"]))
    return "\n".join(parts)


def _element(tag: str, text: str, *, right: bool = False) -> str:
    return f"<{tag}{RIGHT if right else ''}>{html.escape(text)}</{tag}>"


def _row(*cells: str) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _merged(reports: Sequence[SessionReport]) -> list[Section]:
    section = merged_section(reports)
    return [section] if len(reports) > 1 and section.rows else []


def as_csv(reports: Sequence[SessionReport]) -> str:
    """Return every metric of every task as CSV; an unknown value is an empty cell."""
    rows = (msgspec.structs.astuple(row) for report in reports for row in report.metrics)
    return csv_page(TaskMetrics.__struct_fields__, rows)

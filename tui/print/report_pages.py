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
        width = max(map(len, facts_of(report)))
        facts = "\n".join(f"{name:<{width}}  {value}" for name, value in facts_of(report).items())
        blocks.append("\n\n".join([wrapped(facts), *map(_section_text, sections_of(report))]))
    return "\n\n\n".join([*blocks, *(_section_text(section) for section in _merged(reports))])


def _section_text(section: Section) -> str:
    parts = [
        section.title,
        *(wrapped(indented(sentence)) for sentence in section.sentences),
        *(f"  {line}" for line in bar_lines(section.bars, BAR_CELLS)),
    ]
    if section.rows:
        parts.append(table(*section.printed(), indent=2))
    return "\n".join(parts)


def as_markdown(reports: Sequence[SessionReport]) -> str:
    """Return the reports in GitHub's Markdown."""
    blocks = []
    for report in reports:
        facts = "\n".join(f"- {name}: {value}" for name, value in facts_of(report).items())
        title = f"# {report.session}"
        blocks += [title, facts, *map(_section_markdown, sections_of(report))]
    return "\n\n".join([*blocks, *(_section_markdown(section) for section in _merged(reports))])


def _section_markdown(section: Section) -> str:
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
        f'<html lang="en"><head><meta charset="utf-8"><title>{html.escape(names)}</title>',
        f"<style>{STYLE}</style></head><body>",
    ]
    for report in reports:
        parts.append(f"<h1>{html.escape(report.session)}</h1>")
        facts = (
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in facts_of(report).items()
        )
        parts.append(f"<table>{''.join(facts)}</table>")
        parts += map(_section_html, sections_of(report))
    parts += map(_section_html, _merged(reports))
    return "\n".join([*parts, "</body></html>"])


def _section_html(section: Section) -> str:
    parts = [f"<h2>{html.escape(section.title)}</h2>"]
    parts += [f"<p>{html.escape(sentence)}</p>" for sentence in section.sentences]
    if section.bars:
        parts.append(f"<pre>{html.escape(chr(10).join(bar_lines(section.bars, BAR_CELLS)))}</pre>")
    if section.rows:
        columns, rows = section.printed()
        aligned = [' class="r"' if column.right else "" for column in columns]
        head = "".join(
            f"<th{kind}>{html.escape(column.title)}</th>"
            for kind, column in zip(aligned, columns, strict=True)
        )
        body = [
            "<tr>"
            + "".join(f"<td{kind}>{html.escape(cell)}</td>" for kind, cell in zip(aligned, row, strict=True))
            + "</tr>"
            for row in rows
        ]
        parts.append("\n".join([f"<table><tr>{head}</tr>", *body, "</table>"]))
    return "\n".join(parts)


def _merged(reports: Sequence[SessionReport]) -> list[Section]:
    section = merged_section(reports)
    return [section] if len(reports) > 1 and section.rows else []


def as_csv(reports: Sequence[SessionReport]) -> str:
    """Return every metric of every task as CSV; an unknown value is an empty cell."""
    rows = (msgspec.structs.astuple(row) for report in reports for row in report.metrics)
    return csv_page(TaskMetrics.__struct_fields__, rows)

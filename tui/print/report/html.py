"""A report as one HTML page: light and dark, sortable, with plots and the kernels of the winners. It loads nothing."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from tui.facts.report import Section
from tui.facts.report.document import Document
from tui.facts.report.kernels import WinnerKernel
from tui.facts.report.section import Bars
from tui.facts.tables import NOTHING, Cell, Column

from .svg import bars_html, plot_svg

HERE = Path(__file__).parent
LONG = 48
"""Characters from which a text may be folded."""
CODE_ELEMENT = r"<code>\1</code>"
CODE = re.compile("`([^`]+)`")
NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?")
KERNELS = "Kernels of the winners"
STYLES = frozenset({"good", "bad", "warn", "dim", "bar"})
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""The page may load nothing, whatever a model wrote into a kernel."""


def as_html(document: Document) -> str:
    """Return a report as one page that refers to no other file."""
    style, script = ((HERE / name).read_text(encoding="utf-8").rstrip() for name in ("page.css", "page.js"))
    sections = [(_slug(number, section), section) for number, section in enumerate(document.sections, 1)]
    names = {slug: section.title for slug, section in sections if section.rows or section.bars}
    if document.kernels:
        names["kernels"] = KERNELS
    links = "".join(f'<a href="#{slug}">{html.escape(name)}</a>' for slug, name in names.items())
    facts = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>" for name, value in document.facts.items()
    )
    title = html.escape(document.title)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>\n<style>\n{style}\n</style></head><body>",
            f"<h1>{title}</h1>\n<dl>{facts}</dl>",
            f"<nav>{links}</nav>",
            *(_section(slug, section) for slug, section in sections),
            *_kernels(document.kernels),
            f"<script>\n{script}\n</script></body></html>",
        ]
    )


def _slug(number: int, section: Section) -> str:
    return section.name or f"s{number}"


def _section(slug: str, section: Section) -> str:
    parts = [f'<h2 id="{slug}">{html.escape(section.title)}</h2>']
    if section.sentences:
        words = html.escape(" ".join(section.sentences))
        parts.append(f"<p>{CODE.sub(CODE_ELEMENT, words)}</p>")
    if section.bars:
        parts.append(bars_html(section.bars))
    if section.plots:
        drawn = "".join(
            bars_html(plot.winners) if isinstance(plot, Bars) else plot_svg(plot) for plot in section.plots
        )
        parts.append(f'<div class="plots">{drawn}</div>')
    if section.rows:
        columns, rows = section.printed_cells()
        head = "".join(map(_head, columns))
        body = "\n".join(f"<tr>{''.join(map(_cell, row, columns))}</tr>" for row in rows)
        parts.append(
            f'<div class="wide"><table class="data"><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'
        )
    return "\n".join(parts)


def _head(column: Column) -> str:
    shape = ' class="r"' if column.right else ""
    return f"<th{shape}><button>{html.escape(column.title)}</button></th>"


def _cell(cell: Cell, column: Column) -> str:
    """Return a cell; its attribute has the value by which the page sorts, which is empty if it is unknown."""
    shape = "r" if column.right else "long" if len(cell.text) > LONG else "short"
    style = f"{shape} {cell.style}" if cell.style in STYLES else shape
    text = cell.text.replace("#", "█") if cell.style == "bar" else cell.text
    return f'<td class="{style}" data-v="{html.escape(_sort_value(cell, column))}">{html.escape(text)}</td>'


def _sort_value(cell: Cell, column: Column) -> str:
    if cell.value is not None:
        return repr(cell.value)
    number = NUMBER.search(cell.text) if column.right else None
    return number[0].replace(",", "") if number else "" if cell.text in NOTHING else cell.text


def _kernels(kernels: tuple[WinnerKernel, ...]) -> Iterator[str]:
    if kernels:
        yield f'<h2 id="kernels">{KERNELS}</h2>'
    for kernel in kernels:
        head = f"{html.escape(kernel.attempt)}<span>{html.escape(kernel.figure)}</span>"
        yield f"<details><summary>{head}<span>{html.escape(kernel.session)}</span></summary>"
        if kernel.diff:
            lines = "".join(map(_diff_line, kernel.diff.splitlines()))
            yield f"<h3>Changes from {html.escape(kernel.baseline)}</h3><pre>{lines}</pre>"
        yield f"<h3>Source</h3><pre>{html.escape(kernel.source)}</pre></details>"


def _diff_line(line: str) -> str:
    kinds = {"+": "added", "-": "removed", "@": "hunk"}
    return f'<span class="{kinds.get(line[:1], "")}">{html.escape(line)}</span>'

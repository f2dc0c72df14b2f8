"""A report as one HTML page: light and dark, sortable, with plots and the kernels of the winners. It loads nothing."""

from __future__ import annotations

import re
from pathlib import Path

from tui.facts.report.document import Document
from tui.facts.tables import NOTHING, Cell, Column

HERE = Path(__file__).parent
LONG = 48
"""Characters from which a text may be folded."""
NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?")
STYLES = frozenset({"good", "bad", "warn", "dim"})


def as_html(document: Document) -> str:
    """Return a report as one page that refers to no other file."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from .plots import svg_element

    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {
        "classes": _classes,
        "sort_value": _sort_value,
        "svg": svg_element,
        "code": _code_parts,
    }
    template = environment.get_template("page.html.j2")
    return template.render(document=document)


def _classes(cell: Cell, column: Column) -> str:
    shape = "r" if column.right else "long" if len(cell.text) > LONG else "short"
    return f"{shape} {cell.style}" if cell.style in STYLES else shape


def _sort_value(cell: Cell, column: Column) -> str:
    """Return the value by which the page sorts; empty if it is unknown."""
    if cell.value is not None:
        return repr(cell.value)
    number = NUMBER.search(cell.text) if column.right else None
    return number[0].replace(",", "") if number else "" if cell.text in NOTHING else cell.text


def _code_parts(sentences: tuple[str, ...]) -> list[str]:
    """Return the parts of the sentences between backquotes: each second part is code."""
    return re.split("`([^`]+)`", " ".join(sentences))

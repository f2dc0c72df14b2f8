"""The knowledge pages of the system message: Markdown files, chosen by target and by the task.

Each file begins with TOML between lines of `+++`: `order` and `sources`; if the page is not for all tasks also
`targets` and `categories`, or `fallback = true` for a page that is used if no other page names the task's category.
`flops_per_byte` is the least arithmetic intensity of the tasks that a page is for. A new category needs no code: add
it to the pages that fit it.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent
MARK = "+++\n"


class Page(NamedTuple):
    """One file of knowledge; the text is a Jinja template."""

    name: str
    order: int
    targets: tuple[str, ...]
    """The targets that it is about, rendered once for each; empty if it is about none."""
    categories: tuple[str, ...]
    """The categories of tasks that it is for; empty: all."""
    fallback: bool
    """True if it is for tasks of a category that no page names."""
    flops_per_byte: float
    """The least arithmetic intensity of the tasks that it is for."""
    sources: tuple[str, ...]
    text: str


@cache
def pages() -> tuple[Page, ...]:
    """Returns all pages in the order of a prompt."""
    return tuple(
        sorted((read_page(file) for file in FOLDER.glob("*.md")), key=lambda page: (page.order, page.name))
    )


def read_page(file: Path) -> Page:
    """Returns the page of a file.

    Raises `ValueError` if it has no head, `tomllib.TOMLDecodeError` or `KeyError` if its head is wrong.
    """
    _, mark, rest = file.read_text(encoding="utf-8").partition(MARK)
    head, closing, text = rest.partition(MARK)
    if not mark or not closing:
        raise ValueError(f"{file.name} has no head between lines of +++")
    fields = tomllib.loads(head)
    return Page(
        name=file.name,
        order=int(fields["order"]),
        targets=tuple(fields.get("targets", ())),
        categories=tuple(fields.get("categories", ())),
        fallback=bool(fields.get("fallback", False)),
        flops_per_byte=float(fields.get("flops_per_byte", 0)),
        sources=tuple(fields["sources"]),
        text=text.strip() + "\n",
    )


def pages_for(category: str, flops_per_byte: float) -> tuple[Page, ...]:
    """Returns the pages for tasks of this category and intensity; pages about a target still need that target."""
    named = any(category in page.categories for page in pages())
    return tuple(
        page
        for page in pages()
        if (category in page.categories if page.categories else not page.fallback or not named)
        and flops_per_byte >= page.flops_per_byte
    )

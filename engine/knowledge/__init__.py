"""What the generator is told besides the task: Markdown files here, chosen by target and by the task's category.

Each file begins with TOML between lines of `+++`: `order`, `sources`, and where it is not for all, `targets` and `categories`,
or `fallback = true` for what is told where no page names the task's category. A new category needs no code: it is
named in the pages that fit it.
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
    """For which targets, once each; empty: not about a target."""
    categories: tuple[str, ...]
    """For which categories of tasks; empty: for all."""
    fallback: bool
    """For tasks of a category that no page names."""
    sources: tuple[str, ...]
    text: str


@cache
def pages() -> tuple[Page, ...]:
    """All pages, in the order in which a prompt has them."""
    return tuple(
        sorted((read_page(file) for file in FOLDER.glob("*.md")), key=lambda page: (page.order, page.name))
    )


def read_page(file: Path) -> Page:
    """One file. `ValueError` when its head is none; `tomllib.TOMLDecodeError` and `KeyError` when it is not right."""
    _, mark, rest = file.read_text(encoding="utf-8").partition(MARK)
    head, closing, text = rest.partition(MARK)
    if not mark or not closing:
        raise ValueError(f"{file.name} does not begin with its head between lines of +++")
    fields = tomllib.loads(head)
    return Page(
        name=file.name,
        order=int(fields["order"]),
        targets=tuple(fields.get("targets", ())),
        categories=tuple(fields.get("categories", ())),
        fallback=bool(fields.get("fallback", False)),
        sources=tuple(fields["sources"]),
        text=text.strip() + "\n",
    )


def pages_for(category: str) -> tuple[Page, ...]:
    """The pages for a task of this category; those about a target are told apart by their `targets`."""
    named = any(category in page.categories for page in pages())
    return tuple(
        page
        for page in pages()
        if (category in page.categories if page.categories else not page.fallback or not named)
    )

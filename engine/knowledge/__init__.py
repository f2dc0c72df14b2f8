"""The knowledge pages of the system message: Markdown files, chosen by target and by what the task is about.

Each file begins with TOML between lines of `+++`: `order` and `sources`. A page about a topic also has `categories` of
tasks, `words` (a regular expression for a task's name), or `products = true` for tasks that multiply matrices.
A page with `fallback = true` is used only if no page before it is about the task. A page about `targets` needs one of
them. The text is a Jinja template, which gets the task as `subject`: parts that cannot matter for it are left out.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

FOLDER = Path(__file__).resolve().parent
MARK = "+++\n"


class Subject(NamedTuple):
    """The subject of a task, for the choice of pages."""

    category: str
    name: str
    """Its name in lower case, with blanks."""
    products: bool = False
    """True if it multiplies matrices."""
    float8: bool = False
    """True if it has to do with 8-bit floats."""
    recorded: bool = False
    """True if its cases are recorded calls, without sizes and values that prompts do not list."""
    single: bool = False
    """True if it may multiply float32 matrices."""
    exponential: bool = False
    """True if it has to do with exponentials."""
    short: bool = False
    """True if every case moves fewer bytes than memory moves during a launch."""

    @property
    def rows(self) -> bool:
        """True if it may have to do with statistics of rows."""
        return bool({"reductions.md", "general.md"} & {page.name for page in pages_for(self)})

    @property
    def sums(self) -> bool:
        """True if it may combine several elements into one."""
        return (
            self.products
            or self.rows
            or bool({"windows.md", "quantization.md"} & {page.name for page in pages_for(self)})
        )


class Page(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of knowledge; the text is a Jinja template."""

    name: str
    order: int
    sources: tuple[str, ...]
    text: str
    targets: tuple[str, ...] = ()
    """The targets that it is about, rendered once for each; empty if it is about none."""
    categories: tuple[str, ...] = ()
    """The categories of tasks that it is for."""
    words: str = ""
    """Regular expression for the names of further tasks that it is for; empty: none."""
    products: bool = False
    """True if it is for tasks that multiply matrices."""
    fallback: bool = False
    """True if it is only for tasks that no other page is about."""

    @property
    def has_topic(self) -> bool:
        """True if it is not for all tasks."""
        return bool(self.categories or self.words or self.products or self.fallback)

    def is_about(self, subject: Subject) -> bool:
        """True if its head names the task."""
        return (
            (subject.category in self.categories and not self.fallback)
            or (bool(self.words) and re.search(self.words, subject.name) is not None)
            or (self.products and subject.products)
        )


@cache
def pages() -> tuple[Page, ...]:
    """Returns all pages in the order of a prompt."""
    return tuple(
        sorted((read_page(file) for file in FOLDER.rglob("*.md")), key=lambda page: (page.order, page.name))
    )


def read_page(file: Path) -> Page:
    """Returns the page of a file.

    Raises `ValueError` if it has no head, or if its head is wrong.
    """
    _, mark, rest = file.read_text(encoding="utf-8").partition(MARK)
    head, closing, text = rest.partition(MARK)
    if not mark or not closing:
        raise ValueError(f"{file.name} has no head between lines of +++")
    return msgspec.convert(tomllib.loads(head) | {"name": file.name, "text": text.strip() + "\n"}, Page)


def pages_for(subject: Subject) -> tuple[Page, ...]:
    """Returns the pages for a task; pages about a target still need that target.

    The last resort is the page without a category.
    """
    topics = [page for page in pages() if page.has_topic]
    chosen = (
        [page for page in topics if page.is_about(subject)]
        or [page for page in topics if page.fallback and subject.category in page.categories]
        or [page for page in topics if page.fallback and not page.categories]
    )
    return tuple(page for page in pages() if not page.has_topic or page in chosen)

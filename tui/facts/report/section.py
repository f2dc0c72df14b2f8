"""A section of a report, before any format: the printed pages and the screen show the same cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tui.facts.tables import NOTHING, UNBOUNDED, Column, Field, Row, columns_of, rows_of

from .model import Winner

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Section:
    """A title, sentences, and a table or bars."""

    title: str
    sentences: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    """
    The key of a row about an attempt begins with the attempt, sometimes with `|` and more behind it. Other keys begin
    with `task:`, `stage:` or `metric:`.
    """
    bars: tuple[Winner, ...] = ()
    """Winners, to draw their speedups as bars."""

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to show."""
        return not (self.sentences or self.rows or self.bars)

    def printed(self) -> tuple[list[Column], list[list[str]]]:
        """Return columns and texts for a page, which folds long cells: without the columns that no row knows a value for."""
        places = [
            place
            for place, column in enumerate(self.columns)
            if not column.if_known or any(row.cells[place].text not in NOTHING for row in self.rows)
        ]
        return [_unbounded(self.columns[place]) for place in places], [
            [row.cells[place].text for place in places] for row in self.rows
        ]


def _unbounded(column: Column) -> Column:
    """Return the column without the bounds of a screen: names and numbers are never cut."""
    least = None if column.keep or column.right else column.least
    return replace(column, least=least, most=UNBOUNDED)


def section_of(
    title: str,
    fields: Sequence[Field[T]],
    items: Iterable[T],
    key: Callable[[T], str],
    *sentences: str,
    further: Iterable[Row] = (),
) -> Section:
    """Return a section with a row for each item, then the `further` rows. Without rows it has no sentences."""
    rows = (*rows_of(fields, items, key), *further)
    return Section(title, tuple(filter(None, sentences)) if rows else (), columns_of(fields), rows)

"""A section of a report, before any format: the printed pages and the screen show the same cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

from tui.facts.tables import NOTHING, UNBOUNDED, Cell, Column, Row

from .model import Winner

T = TypeVar("T")


class Field(NamedTuple, Generic[T]):
    """A column with the function that makes its cells."""

    column: Column
    cell: Callable[[T], Cell | str]


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


def columns_of(fields: Iterable[Field[T]]) -> tuple[Column, ...]:
    """Return the columns of a table."""
    return tuple(field.column for field in fields)


def rows_of(fields: Sequence[Field[T]], items: Iterable[T], key: Callable[[T], str]) -> tuple[Row, ...]:
    """Return a row for each item."""
    return tuple(Row(key(item), tuple(as_cell(field.cell(item)) for field in fields)) for item in items)


def as_cell(value: Cell | str) -> Cell:
    """Return the cell of a text in the plain style."""
    return value if isinstance(value, Cell) else Cell(value)

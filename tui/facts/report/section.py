"""A section of a report, before any format: the printed pages and the screen show the same cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from sessions.state.speed import Speed
from tui.facts.tables import UNBOUNDED, Cell, Column, Field, Row, columns_of, known_cells, rows_of

T = TypeVar("T")


class Point(NamedTuple):
    """A point of a curve with the ends of its band, which are equal without one."""

    x: float
    y: float
    low: float
    high: float


class Curve(NamedTuple):
    """A line of a plot. Between two points the value of the first one holds."""

    name: str
    points: tuple[Point, ...]


class NamedSpeed(NamedTuple):
    """The speedup of a task's winner."""

    name: str
    speed: Speed


class Bars(NamedTuple):
    """A bar for each speedup."""

    speeds: tuple[NamedSpeed, ...]


class Plot(NamedTuple):
    """Curves with one pair of axes."""

    x: str
    """Name of the horizontal axis, with its unit."""
    y: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A title, sentences, and a table."""

    title: str
    sentences: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    """
    The key of a row about an attempt begins with the attempt, sometimes with `|` and more behind it. Other keys begin
    with `task:` or `stage:`.
    """
    name: str = ""
    """Short name of a table over rows, as `--table` takes it."""
    plots: tuple[Plot | Bars, ...] = ()
    """Drawn on the HTML page and in files of plots, bars also on the screen; the rows have the same figures."""

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to show."""
        return not (self.sentences or self.rows)

    def printed_cells(self) -> tuple[list[Column], list[list[Cell]]]:
        """Return columns and cells for a page, which folds long cells: without the columns that no row knows a value for."""
        columns, cells = known_cells(self.columns, self.rows)
        return [_unbounded(column) for column in columns], cells

    def printed(self) -> tuple[list[Column], list[list[str]]]:
        """Return the same columns with the texts of the cells."""
        columns, rows = self.printed_cells()
        return columns, [[cell.text for cell in row] for row in rows]


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

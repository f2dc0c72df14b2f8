"""Tables as plain data, and which of their columns fit: one layout for the cockpit and for printed pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from rich.cells import cell_len

from tui.facts.vocabulary import NOT_VISIBLE, UNKNOWN

GAP = 2
"""Cells between columns."""
FOLDED = 14
"""Least width of folded words."""
UNBOUNDED = 10_000
"""Greatest width of a column without a limit."""
NOTHING = frozenset({"", UNKNOWN, NOT_VISIBLE})
"""Texts of a cell without a known value."""


T = TypeVar("T")


class Cell(NamedTuple):
    """One value in one style, or in several."""

    text: str
    style: str = ""
    key: str = ""
    """The thing that the cell is about; a cursor stops at cells with a key."""
    pieces: tuple[tuple[str, str], ...] = ()
    """(text, style) of the parts of a text in several styles."""
    value: float | None = None
    """The number behind the text, unrounded, for data files and for sorting."""

    @classmethod
    def of(cls, *pieces: tuple[str, str], key: str = "") -> Cell:
        """Return a cell of pieces."""
        return cls("".join(text for text, _ in pieces), "", key, pieces)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. Between `least` and `most` cells, its contents decide how wide it is."""

    title: str
    least: int | None = None
    """Least width in cells, also of short contents; `None`: `FOLDED` for words, and numbers as wide as they are."""
    most: int = UNBOUNDED
    """Greatest width; equal to `least` where contents change all the time."""
    right: bool = False
    """Aligned to the right, for numbers."""
    drop: int = 0
    """Order of removal from a table that is too wide: greatest first; 0 is never removed."""
    if_known: bool = False
    """Removed if no cell has a known value."""
    keep: bool = False
    """Whether the column is as wide as its contents, for names that users copy, unless it has a least width."""
    gap: int = GAP
    """Cells before the column."""
    inner_cut: bool = False
    """Cut text that does not fit in the middle instead of at its end, for names that differ at their ends."""
    paged: bool = False
    """If not all paged columns fit, those around the cursor are shown."""


Number = partial(Column, right=True)
"""A column of numbers."""


class Field(NamedTuple, Generic[T]):
    """A column with the function that makes its values. A text is a cell in `style`; an empty text under a title is unknown."""

    column: Column
    value: Callable[[T], Cell | str]
    style: str = ""

    def cell(self, item: T) -> Cell:
        """Return the cell of an item."""
        value = self.value(item)
        cell = Cell(value, self.style) if isinstance(value, str) else value
        return cell if cell.text or not self.column.title else Cell(UNKNOWN, "dim")


@dataclass(frozen=True, slots=True)
class Row:
    """One row; `key` names the thing that it is about.

    The last cell of a row with fewer cells than columns is as wide as its text.
    """

    key: str
    cells: tuple[Cell, ...]
    style: str = ""
    """Laid under every cell."""
    between: bool = False
    """True for a line between rows, which the cursor skips: a title, and at the right its remark."""


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table with sentences below it; without columns only the sentences."""

    title: str
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    sentences: tuple[Cell, ...] = ()

    @property
    def has_content(self) -> bool:
        """True if there are rows or sentences to show; else a page leaves the table out."""
        return bool(self.rows or self.sentences)

    def with_sentences(self, *texts: str, style: str = "") -> Table:
        """Return the table with these sentences; empty texts are left out."""
        return replace(self, sentences=tuple(Cell(text.strip("\n"), style) for text in texts if text.strip()))


def columns_of(fields: Iterable[Field[T]]) -> tuple[Column, ...]:
    """Return the columns of a table."""
    return tuple(field.column for field in fields)


def rows_of(
    fields: Sequence[Field[T]], items: Iterable[T], key: Callable[[T], str] = lambda _: ""
) -> tuple[Row, ...]:
    """Return a row for each item; `key` names the thing that it is about."""
    return tuple(Row(key(item), tuple(field.cell(item) for field in fields)) for item in items)


def table_of(title: str, fields: Sequence[Field[T]], items: Iterable[T]) -> Table:
    """Return a table with a row for each item."""
    return Table(title, columns_of(fields), rows_of(fields, items))


def row(*values: Cell | str) -> Row:
    """Return a row of values. A text is a cell without a style; an empty text is an unknown value."""
    cells = (Cell(value) if isinstance(value, str) else value for value in values)
    return Row("", tuple(cell if cell.text else Cell(UNKNOWN, "dim") for cell in cells))


def known_cells(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[list[Column], list[list[Cell]]]:
    """Return columns and cells, without the columns with `if_known` that no row knows a value for."""
    places = [
        place
        for place, column in enumerate(columns)
        if not column.if_known or any(row.cells[place].text not in NOTHING for row in rows)
    ]
    return [columns[place] for place in places], [[row.cells[place] for place in places] for row in rows]


def named_values(title: str, pairs: Iterable[tuple[str, str]]) -> Table:
    """Return a table of names with their values, without titles of columns."""
    columns = (Column("", keep=True), Column(""))
    return Table(title, columns, tuple(row(Cell(name, "dim"), value) for name, value in pairs))


class PlacedColumn(NamedTuple):
    """The position of a column."""

    column: int
    x: int
    width: int


def lay_out(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    width: int,
    at: int = 0,
) -> tuple[PlacedColumn, ...]:
    """Return the columns that fit into `width` cells, with the widths of their contents or less.

    Of paged columns, those around the column `at` are shown. Then columns with `drop` go. If that is not enough, the
    widest column that may be narrower shrinks.
    """
    wanted = [
        min(
            max(column.least or 1, cell_len(column.title), *(cell_len(row[place]) for row in rows), 1),
            column.most,
        )
        for place, column in enumerate(columns)
    ]
    minimum = [min(width, _least(column, width)) for column, width in zip(columns, wanted, strict=True)]
    shown = [
        place
        for place, column in enumerate(columns)
        if not column.if_known or any(row[place] not in NOTHING for row in rows)
    ]

    def needed(widths: Sequence[int]) -> int:
        return sum(widths[place] for place in shown) + sum(columns[place].gap for place in shown[1:])

    # A column that never goes is not narrowed while a column with `drop` is left.
    lasting = [minimum[place] if column.drop else wanted[place] for place, column in enumerate(columns)]
    if paged := [place for place in shown if columns[place].paged]:
        stays = [place for place in shown if not (columns[place].drop or columns[place].paged)]
        fixed = sum(wanted[place] + columns[place].gap for place in stays)
        widths = [wanted[place] + columns[place].gap for place in paged]
        page = _page(paged, widths, width - fixed, at)
        shown = [place for place in shown if place in page or place not in paged]
    while needed(lasting) > width and (droppable := [place for place in shown if columns[place].drop]):
        shown.remove(max(droppable, key=lambda place: (columns[place].drop, place)))
    widths = list(wanted)
    while needed(widths) > width:
        narrowable = [place for place in shown if widths[place] > minimum[place]]
        if not narrowable:
            break
        widths[max(narrowable, key=lambda place: widths[place])] -= 1
    x = 0
    places: list[PlacedColumn] = []
    for place in shown:
        x += columns[place].gap if places else 0
        places.append(PlacedColumn(place, x, widths[place]))
        x += widths[place]
    return tuple(places)


def _page(paged: Sequence[int], widths: Sequence[int], room: int, at: int) -> Sequence[int]:
    """Return the page with the column `at` of columns with these widths; all columns if they fit."""
    if sum(widths) <= room:
        return paged
    count = max(1, room // max(widths))
    start = paged.index(at) // count * count if at in paged else 0
    return paged[max(0, min(start, len(paged) - count)) :][:count]


def _least(column: Column, wanted: int) -> int:
    if column.least is not None:
        return column.least
    return wanted if column.keep or column.right else max(FOLDED, cell_len(column.title))

"""A table whose rows hold several things: the cursor moves over rows and over the cells within a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from tui.cockpit.draw.lines import EMPTY, Line, Span, cells
from tui.cockpit.widgets.table import MARGIN, LineTable
from tui.facts.tables import PlacedColumn, Row


@dataclass(frozen=True, slots=True)
class Spot:
    """One thing in a row: its key, and the spans of the row's line that show it."""

    key: str
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class MatrixRow(Row):
    """A row that is drawn already. All rows of a matrix have the same number of spans of the same widths."""

    line: Line = EMPTY
    spots: tuple[Spot, ...] = ()


class Matrix(LineTable):
    """Draws lines that somebody else made, under one line of titles."""

    MARKS = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("h,left", "beside(-1)", "cell before", show=False, id="matrix.left"),
        Binding("l,right", "beside(1)", "next cell", show=False, id="matrix.right"),
    ]

    def __init__(self, *, empty: str = "", id: str | None = None) -> None:
        super().__init__((), empty=empty, id=id)
        self.titles: Line = EMPTY
        self._spot: str | None = None
        self._column = 0

    @property
    def spot(self) -> str | None:
        """Key of the cell under the cursor; `None` if the row has none."""
        spots = self._spots()
        if not spots:
            return None
        keys = [spot.key for spot in spots]
        return self._spot if self._spot in keys else keys[min(self._column, len(keys) - 1)]

    @property
    def spot_keys(self) -> list[str]:
        """Keys of all cells, row by row."""
        return [spot.key for row in self.rows if isinstance(row, MatrixRow) for spot in row.spots]

    def show(self, titles: Line, rows: Sequence[MatrixRow]) -> None:
        """Draw these rows; cells that stay the same are left alone."""
        if titles != self.titles:
            self.titles = titles
            self.refresh()
        self.set_rows(rows)

    def cells_line(self, row: Row, placed: Sequence[PlacedColumn]) -> Line:
        """Return the line that the row brings."""
        return row.line if isinstance(row, MatrixRow) else EMPTY

    def title_line(self) -> Line:
        """Return the titles, with the margin."""
        return Span(" " * MARGIN), *self.titles

    def whole_line(self, place: int) -> Line:
        """Return a row with the cells under the cursor and the marked cells."""
        row = self.rows[place]
        assert isinstance(row, MatrixRow)
        here = place == self.cursor
        mark = "*" if any(spot.key in self.marked for spot in row.spots) else " "
        spans = [Span(f"{'>' if here else ' '}{mark}", "key"), *row.line]
        for spot in row.spots:
            under = here and spot.key == self.spot
            if not under and spot.key not in self.marked:
                continue
            style = "cursor" if under and self.has_focus else "marked"
            for index in range(spot.first + 1, spot.stop + 1):
                spans[index] = Span(spans[index].text, f"{spans[index].style} {style}".strip())
        return tuple(spans)

    def select_spot(self, key: str) -> None:
        """Put the cursor on a cell."""
        for row in self.rows:
            keys = [spot.key for spot in row.spots] if isinstance(row, MatrixRow) else []
            if key in keys:
                self._spot, self._column = key, keys.index(key)
                self.select(row.key)
                return

    def action_beside(self, steps: int) -> None:
        """Move the cursor within the row."""
        keys = [spot.key for spot in self._spots()]
        if self.spot is not None:
            self.select_spot(keys[min(max(keys.index(self.spot) + steps, 0), len(keys) - 1)])

    def action_cursor(self, steps: int) -> None:
        """Move the cursor to another row, in the same column."""
        self._spot = None
        super().action_cursor(steps)

    def action_open(self) -> None:
        """Open the cell under the cursor."""
        if self.spot is not None:
            self.post_message(self.Opened(self, self.spot))

    def action_mark(self) -> None:
        """Mark the cell under the cursor, or take its mark away."""
        if self.spot is not None:
            self.marked ^= {self.spot}
            self.refresh()
            self.post_message(self.Moved(self))

    def on_click(self, event: events.Click) -> None:
        """A click puts the cursor on a cell; a second click opens it."""
        row = self.row_at(event)
        if not isinstance(row, MatrixRow):
            return
        for spot in row.spots:
            left = MARGIN + cells(row.line[: spot.first])
            if left <= event.x < left + cells(row.line[spot.first : spot.stop]):
                self.select_spot(spot.key)
                break
        else:
            self.select(row.key)
        if event.chain > 1:
            self.action_open()

    def _spots(self) -> tuple[Spot, ...]:
        row = self.rows[self.cursor] if self.rows else None
        return row.spots if isinstance(row, MatrixRow) else ()

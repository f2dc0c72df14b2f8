"""A table with a cursor on one cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from tui.cockpit.draw.grid import heading
from tui.cockpit.draw.lines import Line, Span, cells
from tui.cockpit.widgets.table import MARGIN, LineTable
from tui.facts.tables import PlacedColumn


class CellTable(LineTable):
    """The cursor keeps its row by the key and its column by the title; a move paints two lines and the titles."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("h,left", "column(-1)", "left", show=False, id="cells.left"),
        Binding("l,right", "column(1)", "right", show=False, id="cells.right"),
    ]
    COLUMN_GAP = 1

    def __init__(self, *, empty: str = "", id: str | None = None) -> None:
        super().__init__((), empty=empty, id=id)
        self.titles: Sequence[str] = ()
        """Titles of the columns that the cursor can be in, also of those that do not fit."""
        self.source = ""
        """Text that is copied instead of the cells."""
        self.chosen_title = ""
        """Title of the column that the cursor keeps, if the table has it."""

    @property
    def copy_text(self) -> str:
        """Return what `y` copies."""
        return self.source or super().copy_text

    @property
    def cursor_title(self) -> str:
        """Title of the column under the cursor; empty without columns."""
        return self.chosen_title if self.chosen_title in self.titles else next(iter(self.titles), "")

    @property
    def shown_titles(self) -> tuple[str, ...]:
        """Titles of the columns on screen."""
        return tuple(self.columns[place.column].title for place in self._places)

    def action_column(self, steps: int) -> None:
        """Move the cursor to another column."""
        if self.titles:
            place = self.titles.index(self.cursor_title) + steps
            self.go_to_column(self.titles[min(max(place, 0), len(self.titles) - 1)])

    def go_to_column(self, title: str) -> None:
        """Put the cursor into a column."""
        self.chosen_title = title
        self.refresh_line(0)
        self._refresh_row(self.cursor)
        self.post_message(self.Moved(self))

    def select(self, key: str) -> None:
        """Put the cursor on a row."""
        before = self.cursor
        self._key = key
        self._refresh_row(before)
        self._refresh_row(self.cursor)
        self._into_view()
        self.post_message(self.Moved(self))

    def _refresh_row(self, place: int) -> None:
        y = place + 1 - self.scroll_offset.y
        if 1 <= y < self.size.height:
            self.refresh_line(y)

    def title_line(self) -> Line:
        """Return the titles; that of the column under the cursor is marked."""
        titles, column = heading(self.columns, self._places), self._cursor_place()
        return Span(" " * MARGIN), *(titles if column is None else _under(titles, column, "key"))

    def whole_line(self, place: int) -> Line:
        """Return a row; the cell under the cursor is marked."""
        row, column = self._drawn[place], self._cursor_place()
        if place != self.cursor or column is None:
            return Span(" " * MARGIN), *row
        mark = Span("> ", "key" if self.has_focus else "dim")
        return mark, *_under(row, column, "cursor" if self.has_focus else "")

    def _cursor_place(self) -> PlacedColumn | None:
        title = self.cursor_title
        return next((place for place in self._places if self.columns[place.column].title == title), None)

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the clicked cell; a second click opens it."""
        x = event.x - MARGIN
        for place in self._places:
            title = self.columns[place.column].title
            if place.x <= x < place.x + place.width and title in self.titles:
                self.go_to_column(title)
        super().on_click(event)


def _under(line: Line, place: PlacedColumn, style: str) -> Line:
    """Lay a style under the cells of one column."""
    spans: list[Span] = []
    x = 0
    for span in line:
        width = cells((span,))
        inside = place.x <= x and x + width <= place.x + place.width
        spans.append(Span(span.text, f"{span.style} {style}".strip()) if inside else span)
        x += width
    return tuple(spans)

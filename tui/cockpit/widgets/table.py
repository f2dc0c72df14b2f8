"""A table with a cursor that paints only the cells that changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.cockpit.draw.grid import heading, places, row_line
from tui.cockpit.draw.lines import Line, Span, cells, line, plain
from tui.cockpit.widgets.palette import Styled
from tui.diagnostics import Complaint
from tui.facts.filters import TEXTS, Filter, Value, parse
from tui.facts.tables import GAP, Column, PlacedColumn, Row
from tui.facts.vocabulary import counted

NO_MATCH = "No row matches the filter. / and escape show all rows."
MARGIN = 2
"""Cells left of the first column, where the cursor's mark stands."""


class LineTable(ScrollView, Styled, can_focus=True):
    """Rows under fixed titles. The row under the cursor keeps it by its key, wherever it moves."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "cursor(1)", "down", show=False, id="table.down"),
        Binding("k,up", "cursor(-1)", "up", show=False, id="table.up"),
        Binding("g,home", "cursor(-100000)", "first", show=False, id="table.first"),
        Binding("G,end", "cursor(100000)", "last", show=False, id="table.last"),
        Binding("pagedown", "page(1)", "page down", show=False, id="table.page_down"),
        Binding("pageup", "page(-1)", "page up", show=False, id="table.page_up"),
        Binding("enter", "open", "open", id="table.open"),
        Binding("space", "mark", "mark", id="table.mark"),
    ]

    class Opened(Message):
        """Enter, or a second click, on a row."""

        def __init__(self, table: LineTable, key: str) -> None:
            super().__init__()
            self.table = table
            self.key = key

        @property
        def control(self) -> LineTable:
            """The table."""
            return self.table

    class Moved(Message):
        """The cursor stands on another row."""

        def __init__(self, table: LineTable) -> None:
            super().__init__()
            self.table = table

        @property
        def control(self) -> LineTable:
            """The table."""
            return self.table

    MARKS: ClassVar[bool] = False
    """True if rows can be marked."""
    TITLE_LINES: ClassVar[int] = 1
    """1 with a line of column titles, 0 without."""
    COLUMN_GAP: ClassVar[int] = GAP
    """Cells between columns."""

    def __init__(
        self, columns: Sequence[Column], *, empty: str = "", id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.columns = tuple(columns)
        self.rows: list[Row] = []
        """The rows that the filter admits."""
        self._all_rows: list[Row] = []
        self._row_filter = Filter()
        self._only: Collection[str] | None = None
        self.empty = empty
        """What stands there while there are no rows."""
        self.marked: set[str] = set()
        """Keys of the marked rows; commands act on all of them."""
        self._key: str | None = None
        self._places: tuple[PlacedColumn, ...] = ()
        self._drawn: list[Line] = []

    @property
    def text(self) -> str:
        """Titles and rows, as plain text."""
        return "\n".join([plain(self.title_line())[MARGIN:], *map(plain, self._drawn)])

    @property
    def copy_text(self) -> str:
        """All cells, columns apart by tabs: what `y` copies."""
        titles = "\t".join(column.title for column in self.columns)
        return "\n".join([titles, *("\t".join(cell.text for cell in row.cells) for row in self.rows)])

    @property
    def cursor(self) -> int:
        """The row under the cursor, 0 while there is none."""
        return next((place for place, row in enumerate(self.rows) if row.key == self._key), 0)

    @property
    def cursor_key(self) -> str | None:
        """Key of the row under the cursor."""
        return self.rows[self.cursor].key if self.rows else None

    def set_rows(self, rows: Sequence[Row], columns: Sequence[Column] | None = None) -> None:
        """Show these rows; cells that stay the same are left alone."""
        if columns is not None and tuple(columns) != self.columns:
            self.columns = tuple(columns)
            self._places = ()
        self._all_rows = list(rows)
        self._show_admitted()

    def _show_admitted(self) -> None:
        rows = [row for row in self._all_rows if self.admits(row)]
        if rows == self.rows and (self._places or not self.columns):
            return
        self.rows = rows
        self._lay_out()

    def admits(self, row: Row) -> bool:
        """True if the filter shows a row."""
        return self._row_filter.matches(self.fields(row))

    def fields(self, row: Row) -> Mapping[str, Value]:
        """Return what the filter compares: the text of each cell, by the title of its column in lower case, or by its place."""
        titles = [column.title.casefold() or str(place) for place, column in enumerate(self.columns)]
        return dict(zip(titles, (cell.text for cell in row.cells), strict=False))

    def show_only(self, titles: Collection[str] | None) -> None:
        """Show only the columns with these titles, as far as they fit; `None` shows all."""
        self._only = titles
        self._places = ()
        self._lay_out()

    def find(self, text: str) -> str:
        """Show only the rows that a filter matches; returns how many these are, or what is wrong with the filter."""
        fields = self.fields(self._all_rows[0]) if self._all_rows else {}
        try:
            self._row_filter = parse(text, TEXTS.intersection(fields))
        except Complaint as error:
            return str(error)
        self._show_admitted()
        self.refresh()
        return f"{len(self.rows)} of {counted(len(self._all_rows), 'row')}" if text else ""

    def go_to_match(self, direction: int) -> bool:
        """Move to the next row, all of which match; `False` at the end."""
        before = self.cursor_key
        self.action_cursor(direction)
        return self.cursor_key != before

    def _lay_out(self) -> None:
        width = max(self.scrollable_content_region.width - MARGIN, 0)
        placed = places(self.columns, self.rows, width, self._only, self.COLUMN_GAP)
        before, self._drawn = self._drawn, [self.cells_line(row, placed) for row in self.rows]
        if placed != self._places or len(self._drawn) != len(before):
            self._places = placed
            self.refresh()
        else:
            for y, (old, new) in enumerate(zip(before, self._drawn, strict=True)):
                if old != new:
                    self._refresh_cells(y, old, new)
        size = Size(0, len(self._drawn) + self.TITLE_LINES)
        if size != self.virtual_size:
            self.virtual_size = size

    def cells_line(self, row: Row, placed: Sequence[PlacedColumn]) -> Line:
        """Return the cells of a row."""
        return row_line(self.columns, placed, row)

    def _refresh_cells(self, y: int, old: Line, new: Line) -> None:
        """Ask for the changed stretch of a row alone: what is asked for is what travels to the terminal."""
        window_y = y + self.TITLE_LINES - self.scroll_offset.y
        if not self.TITLE_LINES <= window_y < self.size.height:
            return
        left, right, x = -1, 0, 0
        if len(old) != len(new):
            left, right = 0, self.size.width
        else:
            for before, after in zip(old, new, strict=True):
                width = cells([after])
                if before != after:
                    left = x if left < 0 else left
                    right = x + width
                x += width
        if left >= 0:
            self.refresh(Region(left + MARGIN, window_y, right - left, 1))

    def on_resize(self, event: events.Resize) -> None:
        """Other width, other columns."""
        self._places = ()
        self._lay_out()

    def render_line(self, y: int) -> Strip:
        """Titles at the top, then the rows in the window."""
        place = y - self.TITLE_LINES + self.scroll_offset.y
        drawn: Line = ()
        if not self.rows:
            words = (NO_MATCH if self._all_rows else self.empty).split("\n")
            drawn = line("  " + words[y], "dim") if y < len(words) else ()
        elif y < self.TITLE_LINES:
            drawn = self.title_line()
        elif place < len(self._drawn):
            drawn = self.whole_line(place)
        return self.strip(drawn, width=self.size.width)

    def title_line(self) -> Line:
        """Return the titles of the columns, with the margin."""
        return Span(" " * MARGIN, "head"), *heading(self.columns, self._places)

    def whole_line(self, place: int) -> Line:
        """Return a row with the marks in its margin and the cursor."""
        row = self._drawn[place]
        mark = "*" if self.rows[place].key in self.marked else " "
        if place != self.cursor:
            return Span(f" {mark}", "key"), *row
        if not self.has_focus:
            return Span(f">{mark}", "dim"), *row
        filled = " " * max(0, self.size.width - MARGIN - cells(row))
        under = (Span(span.text, f"{span.style} cursor".strip()) for span in row)
        return Span(f">{mark}", "cursor key"), *under, Span(filled, "cursor")

    def row_at(self, event: events.Click) -> Row | None:
        """Return the row that a person clicked."""
        place = event.y - self.TITLE_LINES + self.scroll_offset.y
        return self.rows[place] if event.y >= self.TITLE_LINES and 0 <= place < len(self.rows) else None

    def on_focus(self) -> None:
        """Draw the cursor as the one that keys move."""
        self.refresh()

    def on_blur(self) -> None:
        """Draw the cursor faintly."""
        self.refresh()

    def select(self, key: str) -> None:
        """Put the cursor on a row."""
        self._key = key
        self.refresh()
        self._into_view()
        self.post_message(self.Moved(self))

    def action_cursor(self, steps: int) -> None:
        """Move the cursor."""
        if self.rows:
            self.select(self.rows[min(max(self.cursor + steps, 0), len(self.rows) - 1)].key)

    def action_page(self, pages: int) -> None:
        """Move the cursor by what is visible."""
        self.action_cursor(pages * max(1, self.size.height - 2))

    def action_open(self) -> None:
        """Open the row under the cursor."""
        if self.cursor_key is not None:
            self.post_message(self.Opened(self, self.cursor_key))

    def action_mark(self) -> None:
        """Mark the row under the cursor, or take its mark away, and go to the next row."""
        if self.cursor_key is not None:
            self.marked ^= {self.cursor_key}
            self.action_cursor(1)
            self.refresh()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Marks only where rows can be marked."""
        return self.MARKS if action == "mark" else super().check_action(action, parameters)

    def on_click(self, event: events.Click) -> None:
        """A click puts the cursor there; a click where it is opens."""
        row = self.row_at(event)
        if row is not None and event.chain > 1:
            self.action_open()
        elif row is not None:
            self.select(row.key)

    def _into_view(self) -> None:
        visible = max(1, self.size.height - self.TITLE_LINES)
        top = self.scroll_offset.y
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif self.cursor >= top + visible:
            self.scroll_to(y=self.cursor - visible + 1, animate=False)

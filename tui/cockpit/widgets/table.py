"""A table with a cursor that paints only the cells that changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
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
from tui.facts.tables import Column, PlacedColumn, Row
from tui.facts.vocabulary import counted

MARGIN = 2
"""Cells left of the first column, where the cursor's mark stands."""


class TableMessage(Message):
    """Something happened to a row or a cell of a table."""

    def __init__(self, table: LineTable, key: str | None) -> None:
        super().__init__()
        self.table = table
        self.key = key or ""

    @property
    def control(self) -> LineTable:
        """The table."""
        return self.table


class LineTable(ScrollView, Styled, can_focus=True):
    """Draws rows under fixed titles. The row under the cursor keeps it by its key, wherever it moves.

    In a row with cells that have keys, the cursor is on one of these cells.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "cursor(1)", "down", show=False, id="table.down"),
        Binding("k,up", "cursor(-1)", "up", show=False, id="table.up"),
        Binding("h,left", "beside(-1)", "left", show=False, id="table.left"),
        Binding("l,right", "beside(1)", "right", show=False, id="table.right"),
        Binding("g,home", "cursor(-100000)", "first", show=False, id="table.first"),
        Binding("G,end", "cursor(100000)", "last", show=False, id="table.last"),
        Binding("pagedown", "page(1)", "page down", show=False, id="table.page_down"),
        Binding("pageup", "page(-1)", "page up", show=False, id="table.page_up"),
        Binding("enter", "open", "open", id="table.open"),
        Binding("space", "mark", "mark", id="table.mark"),
        Binding("escape", "end_find", "show all", id="table.show_all", key_display="esc"),
    ]

    class Opened(TableMessage):
        """Enter, or a second click, on a row or a cell with a key."""

    class Moved(TableMessage):
        """The cursor is on another row or cell."""

    MARKS: ClassVar[bool] = False
    """True if rows, or cells with keys, can be marked."""
    NO_MATCH = "No row matches the filter. / and escape show all rows."
    NOUN = "row"
    """Noun for the rows in the answer of a filter."""

    def __init__(
        self, columns: Sequence[Column] = (), *, empty: str = "", help: str = "", id: str | None = None
    ) -> None:
        super().__init__(id=id)
        if help:
            self.HELP = help  # type: ignore[misc]  # Textual reads it from the instance
        self.columns = tuple(columns)
        self.rows: list[Row] = []
        """The rows that the filter admits."""
        self._all_rows: list[Row] = []
        self.filtered = ""
        """Text of the filter in force."""
        self._row_filter = Filter()
        self.empty = empty
        """What stands there while there are no rows."""
        self.marked: set[str] = set()
        """Keys of the marked rows or cells; commands act on all of them."""
        self.source = ""
        """Text that is copied instead of the cells."""
        self._key: str | None = None
        self._cell: str | None = None
        """Key of the cell that the cursor keeps, if its row has it; else it keeps the place among the cells."""
        self._cell_place = 0
        self._places: tuple[PlacedColumn, ...] = ()

    @property
    def text(self) -> str:
        """Titles and rows, as plain text."""
        return "\n".join([plain(self._title_line())[MARGIN:], *(plain(self._line(row)) for row in self.rows)])

    @property
    def copy_text(self) -> str:
        """Text that `y` copies: all cells, columns apart by tabs, without the lines between rows."""
        titles = "\t".join(column.title for column in self.columns)
        rows = ("\t".join(cell.text for cell in row.cells) for row in self.rows if not row.between)
        return self.source or "\n".join([titles, *rows])

    @property
    def shown_titles(self) -> tuple[str, ...]:
        """Titles of the columns on screen."""
        return tuple(self.columns[place.column].title for place in self._places)

    @property
    def cursor(self) -> int:
        """The row under the cursor, 0 while there is none; no line between rows, unless there is nothing else."""
        here = next((place for place, row in enumerate(self.rows) if row.key == self._key), 0)
        while here < len(self.rows) - 1 and self.rows[here].between:
            here += 1
        return here

    @property
    def cursor_key(self) -> str | None:
        """Key of the row under the cursor."""
        return self.rows[self.cursor].key if self.rows else None

    @property
    def cell_key(self) -> str | None:
        """Key of the cell under the cursor; `None` in a row without such cells."""
        keys = self._keys_beside()
        if not keys:
            return None
        return self._cell if self._cell in keys else keys[min(self._cell_place, len(keys) - 1)]

    @property
    def cell_keys(self) -> list[str]:
        """Keys of all cells, row by row."""
        return [cell.key for row in self.rows for cell in row.cells if cell.key]

    def _keys_beside(self) -> list[str]:
        """Keys in the row under the cursor."""
        return [cell.key for cell in self.rows[self.cursor].cells if cell.key] if self.rows else []

    def set_rows(self, rows: Sequence[Row], columns: Sequence[Column] | None = None) -> None:
        """Show these rows; cells that stay the same are left alone."""
        if columns is not None and tuple(columns) != self.columns:
            self.columns = tuple(columns)
            self._places = ()
        self._all_rows = list(rows)
        self._show_admitted()

    def _show_admitted(self) -> None:
        rows = self.arranged([row for row in self._all_rows if self._row_filter.matches(self.fields(row))])
        if rows == self.rows and (self._places or not self.columns):
            return
        if self._key is None:  # the cursor stays with its row, also before a person moved it
            self._key = self.cursor_key
        before, self.rows = self.rows, rows
        self._lay_out(before)

    def arranged(self, rows: list[Row]) -> list[Row]:
        """Return the admitted rows as they are shown; a subclass may put lines between them."""
        return rows

    def fields(self, row: Row) -> Mapping[str, Value]:
        """Return what the filter compares: the text of each cell, by the title of its column in lower case, or by its place."""
        titles = [column.title.casefold() or str(place) for place, column in enumerate(self.columns)]
        return dict(zip(titles, (cell.text for cell in row.cells), strict=False))

    def field_names(self) -> Collection[str]:
        """Return the fields that a filter may name."""
        return TEXTS.intersection(self.fields(self._all_rows[0]) if self._all_rows else ())

    def find(self, text: str) -> str:
        """Show only the rows that a filter matches.

        Returns how many these are, or what is wrong with the filter, which then stays as it was.
        """
        try:
            self._row_filter = parse(text, self.field_names())
        except Complaint as error:
            return str(error)
        self.filtered = text.strip()
        self._show_admitted()
        self.refresh()
        self.screen.refresh_bindings()
        shown = sum(not row.between for row in self.rows)
        return f"{shown} of {counted(len(self._all_rows), self.NOUN)}" if text else ""

    def action_end_find(self) -> None:
        self.find("")

    def _lay_out(self, before: Sequence[Row] | None = None) -> None:
        """Place the columns, and ask for what looks other than with the rows `before`."""
        before = self.rows if before is None else before
        width = max(self.scrollable_content_region.width - MARGIN, 0)
        placed = places(self.columns, self.rows, width, self._column())
        if placed != self._places or len(self.rows) != len(before):
            self._places = placed
            self.refresh()
        else:
            top = self.scroll_offset.y
            for y, (old, new) in enumerate(zip(before, self.rows, strict=True)):
                if old != new and top <= y < top + self.size.height:
                    self._refresh_cells(y, self._line(old), self._line(new))
        size = Size(0, len(self.rows) + self._title_lines)
        if size != self.virtual_size:
            self.virtual_size = size

    def _line(self, row: Row) -> Line:
        return self._line_between(row) if row.between else row_line(self.columns, self._places, row)

    def _column(self) -> int:
        """The column of the cell under the cursor; -1 without one."""
        key = self.cell_key
        row = self.rows[self.cursor].cells if key is not None else ()
        return next((place for place, cell in enumerate(row) if cell.key == key), -1)

    @property
    def _title_lines(self) -> int:
        return int(any(column.title for column in self.columns))

    def _refresh_cells(self, y: int, old: Line, new: Line) -> None:
        """Ask for the changed stretch of a row alone: what is asked for is what travels to the terminal."""
        window_y = y + self._title_lines - self.scroll_offset.y
        if old == new or window_y >= self.size.height:
            return
        left, right = -MARGIN, self.size.width
        if len(old) == len(new) and not self.rows[y].between:
            ends = accumulate(cells([span]) for span in new)
            changed = [
                (end - cells([span]), end)
                for before, span, end in zip(old, new, ends, strict=True)
                if before != span
            ]
            left, right = changed[0][0], changed[-1][1]
        self.refresh(Region(left + MARGIN, window_y, right - left, 1))

    def on_resize(self, event: events.Resize) -> None:
        """Other width, other columns."""
        self._places = ()
        self._lay_out()

    def render_line(self, y: int) -> Strip:
        """Titles at the top, then the rows in the window."""
        place = y - self._title_lines + self.scroll_offset.y
        drawn: Line = ()
        if not self.rows:
            words = (self.NO_MATCH if self._all_rows else self.empty).split("\n")
            drawn = line("  " + words[y], "dim") if y < len(words) else ()
        elif y < self._title_lines:
            drawn = self._title_line()
        elif place < len(self.rows):
            drawn = self._whole_line(place)
        return self.strip(drawn, width=self.size.width)

    def _title_line(self) -> Line:
        """The titles with the margin; that of the column under the cursor is marked."""
        titles = heading(self.columns, self._places)
        return Span(" " * MARGIN, "head"), *self._under(titles, self._column(), "key")

    def _whole_line(self, place: int) -> Line:
        """A row with the marks in its margin and the cursor on the row or on one cell."""
        row, drawn, here = self.rows[place], self._line(self.rows[place]), place == self.cursor
        if row.between:
            return drawn
        mark = "*" if row.key in self.marked else " "
        style = "cursor" if self.has_focus else ""
        for column, cell in enumerate(row.cells):
            if cell.key in self.marked:
                mark, drawn = "*", self._under(drawn, column, "marked")
        if not here:
            return Span(f" {mark}", "key"), *drawn
        if self.cell_key is not None:
            under_cursor = self._under(drawn, self._column(), style or "marked")
            return Span(f">{mark}", "key" if style else "dim"), *under_cursor
        if not style:
            return Span(f">{mark}", "dim"), *drawn
        filled = " " * max(0, self.size.width - MARGIN - cells(drawn))
        under = (Span(span.text, f"{span.style} cursor".strip()) for span in drawn)
        return Span(f">{mark}", "cursor key"), *under, Span(filled, "cursor")

    def _line_between(self, row: Row) -> Line:
        """A row over the whole width, without columns and without margin."""
        title, *remarks = (Span(cell.text, cell.style) for cell in row.cells)
        if not remarks:
            return (title,)
        fill = max(self.size.width - cells((title, *remarks)) - 1, 1)
        return title, Span("─" * fill, "rule"), *remarks, Span("─", "rule")

    def _under(self, drawn: Line, column: int, style: str) -> Line:
        """Lay a style under the cells of one column."""
        place = next((place for place in self._places if place.column == column), None)
        if place is None:
            return drawn
        spans: list[Span] = []
        x = 0
        for span in drawn:
            width = cells((span,))
            inside = place.x <= x and x + width <= place.x + place.width
            spans.append(Span(span.text, f"{span.style} {style}".strip()) if inside else span)
            x += width
        return tuple(spans)

    def on_focus(self) -> None:
        """Draw the cursor as the one that keys move, or faintly."""
        self.refresh()

    on_blur = on_focus

    def select(self, key: str) -> None:
        """Put the cursor on a row."""
        before = self.cursor
        self._key = key
        self._show_cursor(before)

    def select_cell(self, key: str) -> None:
        """Put the cursor on a cell, in its row if the row has one."""
        before, rows = self.cursor, self.rows[self.cursor :] + self.rows[: self.cursor]
        row = next((row for row in rows if any(cell.key == key for cell in row.cells)), None)
        if row is None:
            return
        self._key, self._cell = row.key, key
        self._cell_place = self._keys_beside().index(key)
        self._show_cursor(before)

    def _show_cursor(self, before: int) -> None:
        """Paint the rows that the cursor left and reached, and scroll there."""
        if any(column.paged for column in self.columns):
            self._lay_out()
        for place in (before, self.cursor):
            y = place + self._title_lines - self.scroll_offset.y
            if self._title_lines <= y < self.size.height:
                self.refresh_line(y)
        if self._title_lines:
            self.refresh_line(0)
        visible = max(1, self.size.height - self._title_lines)
        top = self.scroll_offset.y
        first = next((place for place, row in enumerate(self.rows) if not row.between), 0)
        if self.cursor == first:
            self.scroll_to(y=0, animate=False)
        elif self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif self.cursor >= top + visible:
            self.scroll_to(y=self.cursor - visible + 1, animate=False)
        self.post_message(self.Moved(self, self.cursor_key))

    def action_cursor(self, steps: int) -> None:
        """Move the cursor by rows, over the lines between them."""
        stops = [place for place, row in enumerate(self.rows) if not row.between]
        if stops:
            here = stops.index(self.cursor) if self.cursor in stops else 0
            self.select(self.rows[stops[min(max(here + steps, 0), len(stops) - 1)]].key)

    def jump(self, wanted: Collection[str], direction: int, *, wraps: bool = False) -> bool:
        """Go to the next row or cell with one of these keys, also past the end if it `wraps`; `False` if there is none."""
        keys = self.cell_keys or [row.key for row in self.rows]
        here = self.cell_key or self.cursor_key
        place = keys.index(here) if here in keys else -1
        ahead = keys[place + 1 :] if direction > 0 else keys[:place][::-1]
        if wraps:
            ahead += keys[: place + 1] if direction > 0 else keys[max(place, 0) :][::-1]
        key = next((key for key in ahead if key in wanted), None)
        if key is not None:
            (self.select_cell if self.cell_keys else self.select)(key)
        return key is not None

    def action_beside(self, steps: int) -> None:
        """Move the cursor within the row."""
        keys, here = self._keys_beside(), self.cell_key
        if here is not None:
            self.select_cell(keys[min(max(keys.index(here) + steps, 0), len(keys) - 1)])

    def action_page(self, pages: int) -> None:
        """Move the cursor by what is visible."""
        self.action_cursor(pages * max(1, self.size.height - 2))

    def action_open(self) -> None:
        """Open the cell under the cursor, else the row."""
        key = self.cell_key or self.cursor_key
        if key is not None:
            self.post_message(self.Opened(self, key))

    def action_mark(self) -> None:
        """Mark the cell under the cursor, or take its mark away; without cells the row, and go to the next row."""
        key = self.cell_key or self.cursor_key
        if key is None:
            return
        self.marked ^= {key}
        self.action_cursor(0 if self.cell_key else 1)
        self.refresh()
        self.screen.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Marks only where rows can be marked; escape ends a filter before it leaves the screen."""
        if action == "end_find":
            return bool(self.filtered)
        return self.MARKS if action == "mark" else super().check_action(action, parameters)

    def on_click(self, event: events.Click) -> None:
        """A click puts the cursor there; a click where it is opens."""
        place = event.y - self._title_lines + self.scroll_offset.y
        if event.y < self._title_lines or not 0 <= place < len(self.rows):
            return
        row, x = self.rows[place], event.x - MARGIN
        clicked = [
            row.cells[column.column].key
            for column in self._places
            if column.x <= x < column.x + column.width and column.column < len(row.cells)
        ]
        if event.chain > 1:
            self.action_open()
            return
        self.select(row.key)
        if clicked and clicked[0]:
            self.select_cell(clicked[0])

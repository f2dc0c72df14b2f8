"""Lines with a cursor, some of which are marked from another column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from tui.cockpit.draw.assembly import CodeRow
from tui.cockpit.draw.lines import Line, Span, cells
from tui.cockpit.widgets.line_view import LineView


class CodeColumn(LineView):
    """One of two columns of code; the cursor is drawn while it has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "down", show=False, id="column.down"),
        Binding("k,up", "move(-1)", "up", show=False, id="column.up"),
        Binding("pagedown", "page(1)", "page down", show=False, id="column.page_down"),
        Binding("pageup", "page(-1)", "page up", show=False, id="column.page_up"),
        Binding("g,home", "move(-1000000)", "top", show=False, id="column.top"),
        Binding("G,end", "move(1000000)", "end", show=False, id="column.end"),
    ]

    @dataclass
    class Moved(Message):
        """The cursor is on another line, or the column has the focus now."""

        column: CodeColumn

    def __init__(self, *, help: str, id: str) -> None:
        super().__init__(help=help, id=id)
        self._rows: Sequence[CodeRow] = ()
        self._tied: frozenset[int] = frozenset()
        self._width = 0
        self._copied_text = ""
        self.cursor = 0

    @property
    def rows(self) -> Sequence[CodeRow]:
        """All rows."""
        return self._rows

    @property
    def row(self) -> CodeRow:
        """The row under the cursor."""
        return self._rows[self.cursor] if self.cursor < len(self._rows) else CodeRow(())

    def show_rows(self, rows: Sequence[CodeRow], *, copy_text: str = "") -> None:
        """Draw these rows; the cursor stays at its number."""
        self._rows, self._copied_text = rows, copy_text
        self._width = max((cells(row.line) for row in rows), default=0)
        self.cursor = max(0, min(self.cursor, len(rows) - 1))
        self._draw()

    def go_to_first(self) -> None:
        """Put the cursor on the first row that is tied to the source."""
        self.cursor = next((place for place, row in enumerate(self._rows) if row.sources), 0)
        self._draw()
        self.show_line(self.cursor)

    def tie(self, sources: frozenset[int]) -> None:
        """Mark the rows of these lines of the source. The cursor goes to the first of them, which is then on screen."""
        self._tied = sources
        places = [place for place, row in enumerate(self._rows) if row.sources & sources]
        if places and self.cursor not in places:
            self.cursor = places[0]
        self._draw()
        top = self.scroll_offset.y
        if places and not any(top <= place < top + self.size.height for place in places):
            self.show_line(places[0])

    def _draw(self) -> None:
        self.show(
            [self._drawn(place, row) for place, row in enumerate(self._rows)],
            copy_text=self._copied_text,
            width=self._width,
        )

    def _drawn(self, place: int, row: CodeRow) -> Line:
        if self.has_focus and place == self.cursor:
            style = "cursor"
        elif not self.has_focus and row.sources & self._tied:
            style = "marked"
        else:
            return row.line
        filled = max(0, self.scrollable_content_region.width - cells(row.line))
        return (
            *(Span(span.text, f"{span.style} {style}".strip()) for span in row.line),
            Span(" " * filled, style),
        )

    def action_move(self, steps: int) -> None:
        self.cursor = max(0, min(self.cursor + steps, len(self._rows) - 1))
        self._draw()
        top = self.scroll_offset.y
        if not top <= self.cursor < top + self.size.height:
            self.show_line(self.cursor)
        self.post_message(self.Moved(self))

    def go_to_match(self, direction: int) -> bool:
        """Put the cursor on the next line with the text that was found."""
        is_there = super().go_to_match(direction)
        if is_there:
            self.action_move(self._match - self.cursor)
        return is_there

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self.size.height - 1))

    def on_click(self, event: events.Click) -> None:
        self.action_move(event.y + self.scroll_offset.y - self.cursor)

    def on_focus(self) -> None:
        self.action_move(0)

    def on_blur(self) -> None:
        self._draw()

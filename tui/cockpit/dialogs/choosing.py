"""Windows with a table, and the one that offers choices: one, or several by marks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from tui.cockpit.dialogs.dialogs import QUIT
from tui.cockpit.dialogs.layers import ClosesOnce
from tui.cockpit.dialogs.line_prompt import ask_to_find
from tui.cockpit.draw.lines import clean, escaped
from tui.cockpit.widgets.key_bar import KeyBar
from tui.cockpit.widgets.table import LineTable
from tui.facts.tables import Cell, Column, Row

T = TypeVar("T")


class TableWindow(ClosesOnce, ModalScreen[T | None]):
    """A table in a window; gives what a person chose there, or `None` if the person left with escape."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel", id="choice.cancel", key_display="esc"),
        QUIT,
    ]
    table: LineTable

    def compose(self) -> ComposeResult:
        with Vertical(id="window"):
            yield self.table
            yield KeyBar(id="window_keys")

    def on_mount(self) -> None:
        self.table.focus()

    def show(self, title: str, rows: Sequence[Row]) -> None:
        """Show the title and the rows, in a window as high as they need."""
        self.query_one("#window").border_title = escaped(title)
        self.table.styles.height = min(max(len(rows), 2) + 1, max(self.app.size.height - 6, 4))
        self.table.set_rows(rows)

    def action_cancel(self) -> None:
        self.dismiss(None)


class ChoiceTable(LineTable):
    """One row a choice."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "open", "choose", id="table.open")]


class MarkedChoiceTable(ChoiceTable):
    """One row a choice; several can be marked."""

    MARKS: ClassVar[bool] = True


class ChoiceDialog(TableWindow[tuple[str, ...]]):
    """Offers choices, as (name, words); gives the chosen names.

    With `marked`, several can be chosen: enter gives the marked ones, or without marks the one under the cursor.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "find", "find", id="choice.find", key_display="/")
    ]

    def __init__(
        self,
        title: str,
        choices: Sequence[tuple[str, str]],
        *,
        current: str = "",
        marked: Collection[str] | None = None,
    ) -> None:
        super().__init__()
        self._title = title
        self._rows = [Row(name, (Cell(clean(name)), Cell(clean(words), "dim"))) for name, words in choices]
        self._current = current
        columns = (Column("choice", 12, 44), Column("", 10, 200, if_known=True))
        table = ChoiceTable if marked is None else MarkedChoiceTable
        self.table = table(columns, empty="\nNo choice matches.", id="choices")
        self.table.marked = set(marked or ())

    def on_mount(self) -> None:
        super().on_mount()
        self.show(self._title, self._rows)
        if any(row.key == self._current for row in self._rows):
            self.table.select(self._current)

    @on(LineTable.Opened)
    def answer(self, message: LineTable.Opened) -> None:
        """Give the marked choices in their order, else the one under the cursor."""
        marked = tuple(row.key for row in self._rows if row.key in self.table.marked)
        self.dismiss(marked or (message.key,))

    def action_find(self) -> None:
        ask_to_find(self.app, self.table.find)

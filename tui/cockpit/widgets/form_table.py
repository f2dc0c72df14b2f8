"""The fields of a form as a table, with the error of a field below it."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.cockpit.draw.lines import Line, Span
from tui.cockpit.widgets.sectioned_table import SectionedTable
from tui.facts.tables import Row


class FormTable(SectionedTable):
    """One row a field; below it the error of its value."""

    HELP = """\
The fields of a new run. `enter` edits a field or opens its choices; an empty
field has the default, drawn faintly. The right side, or pane 2, shows what the
run will do before it starts. Estimates come from past sessions of the same
task, model and method: median, lowest and highest. `ctrl+r` starts the run.
`y` copies the same run as a line for a shell.
"""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "open", "edit", id="table.open")]
    command = ""
    """The run as a line for a shell."""

    def heading_line(self, row: Row, width: int) -> Line:
        """Return a line of a field's error."""
        return (Span("     "), Span(row.cells[0].text, "bad"))

    @property
    def copy_text(self) -> str:
        """The run as a line for a shell."""
        return self.command

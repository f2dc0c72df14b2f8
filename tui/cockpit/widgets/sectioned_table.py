"""A table with lines between its rows that the cursor skips: titles of sections, or remarks about the row above."""

from __future__ import annotations

from tui.cockpit.draw.lines import Line
from tui.cockpit.widgets.table import LineTable
from tui.facts.tables import Row

HEADING = "#"
"""Start of the keys of these lines."""


class SectionedTable(LineTable):
    """A subclass draws the lines between the rows."""

    def heading_line(self, row: Row, width: int) -> Line:
        """Return a line between the rows, over the whole width."""
        raise NotImplementedError

    @staticmethod
    def is_heading(row: Row) -> bool:
        """Whether a row is a line that the cursor skips."""
        return row.key.startswith(HEADING)

    @property
    def cursor(self) -> int:
        """The row under the cursor; no line between rows, unless there is nothing else."""
        place = super().cursor
        while place < len(self.rows) - 1 and self.is_heading(self.rows[place]):
            place += 1
        return place

    def action_cursor(self, steps: int) -> None:
        """Move the cursor by rows, over the lines between them."""
        stops = [place for place, row in enumerate(self.rows) if not self.is_heading(row)]
        if not stops:
            return
        here = stops.index(self.cursor) if self.cursor in stops else 0
        target = min(max(here + steps, 0), len(stops) - 1)
        self.select(self.rows[stops[target]].key)
        if target == 0:
            self.scroll_to(y=0, animate=False)

    @property
    def copy_text(self) -> str:
        """All cells, columns apart by tabs, without the lines between rows."""
        titles = "\t".join(column.title for column in self.columns)
        rows = ["\t".join(cell.text for cell in row.cells) for row in self.rows if not self.is_heading(row)]
        return "\n".join([titles, *rows])

    def whole_line(self, place: int) -> Line:
        """Return a line between rows over the whole width; all else as in every table."""
        row = self.rows[place]
        return self.heading_line(row, self.size.width) if self.is_heading(row) else super().whole_line(place)

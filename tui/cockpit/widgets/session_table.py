"""The table of Home: sessions under section lines, filtered and ordered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.strip import Strip

from tui.cockpit.home_view import COLUMNS, FINISHED, ORDERS, RUNNING, section_line, sections
from tui.cockpit.widgets.table import LineTable
from tui.diagnostics import Complaint
from tui.filters import Filter, parse
from tui.session_fields import SESSION_FIELDS
from tui.vocabulary import counted

if TYPE_CHECKING:
    from sessions.catalog import SessionInfo

SECTIONS = (RUNNING, FINISHED)
NO_MATCH = "\nNo session matches the filter. escape shows all sessions."


class SessionTable(LineTable):
    """One row a session. The cursor skips the section lines."""

    MARKS: ClassVar[bool] = True
    HELP = """\
One row a session: running sessions first, then all others. `enter` opens the
session under the cursor: a running one live, any other as a replay at its end.
The line at the bottom names the command that goes on with it.

solved     tasks with a correct attempt, of all tasks
confirmed  number of solved tasks whose best attempt passed the exam
best       measured speedup against the baseline of its session: geometric mean
           over cases and its 95 % interval; green if the interval is above 1
cost       spent, and the cap if there is one
time       while an engine worked
state      `! 2 reviews` wait for you; stopped and crashed sessions can go on

Filter: `softmax`, `state:crashed`, `model:qwen`, `speedup>1.2`, `-method:tune`.
`space` marks sessions; `R` opens one report of all marked sessions.
"""

    def __init__(self, *, empty: str, id: str | None = None) -> None:
        super().__init__(COLUMNS, empty=empty, id=id)
        self.infos: tuple[SessionInfo, ...] = ()
        self.order = ORDERS[0]
        self.filtered = ""
        """Text of the filter in force."""
        self.nothing = empty
        """Shown while there are no sessions at all."""
        self._filter = Filter()

    @property
    def current(self) -> SessionInfo | None:
        """The session under the cursor."""
        return next((info for info in self.infos if info.name == self.cursor_key), None)

    @property
    def cursor(self) -> int:
        """The row under the cursor; never a section line, unless there is nothing else."""
        place = super().cursor
        is_section = place < len(self.rows) and self.rows[place].key in SECTIONS
        return min(place + 1, len(self.rows) - 1) if is_section else place

    def show(self, infos: Sequence[SessionInfo]) -> None:
        """Show these sessions; marks of sessions that are gone go with them."""
        self.infos = tuple(infos)
        self.marked &= {info.name for info in infos}
        self._fill()

    def _fill(self) -> None:
        self.empty = NO_MATCH if self.infos else self.nothing
        was_empty = not self.rows
        self.set_rows(sections(self.infos, order=self.order, chosen=self._filter))
        if was_empty or not self.rows:
            self.refresh()
        self.post_message(self.Moved(self))

    def find(self, text: str) -> str:
        """Filter the sessions; returns how many match, or what is wrong with the filter, which then stays as it was."""
        try:
            self._filter = parse(text, SESSION_FIELDS)
        except Complaint as error:
            return str(error)
        self.filtered = text.strip()
        self._fill()
        self.refresh()
        shown = sum(row.key not in SECTIONS for row in self.rows)
        return f"{shown} of {counted(len(self.infos), 'session')}" if text else ""

    def next_order(self) -> None:
        """Order by the next of `ORDERS`."""
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        self._fill()
        self.refresh()

    def action_cursor(self, steps: int) -> None:
        """Move the cursor, over section lines."""
        if not self.rows:
            return
        target = min(max(self.cursor + steps, 0), len(self.rows) - 1)
        step = 1 if steps > 0 else -1
        while 0 <= target < len(self.rows) and self.rows[target].key in SECTIONS:
            target += step
        if 0 <= target < len(self.rows):
            self.select(self.rows[target].key)
        elif steps < 0:
            self.select(self.rows[1].key)
            self.scroll_to(y=0, animate=False)

    @property
    def copy_text(self) -> str:
        """All cells, columns apart by tabs, without section lines."""
        titles = "\t".join(column.title for column in self.columns)
        rows = ["\t".join(cell.text for cell in row.cells) for row in self.rows if row.key not in SECTIONS]
        return "\n".join([titles, *rows])

    def render_line(self, y: int) -> Strip:
        """Section lines over the whole width; all else as in every table."""
        place = y - 1 + self.scroll_offset.y
        if y >= 1 and place < len(self.rows) and self.rows[place].key in SECTIONS:
            row = self.rows[place]
            width = self.size.width
            drawn = section_line(
                row.key, row.cells[0].text, order=self.order, filtered=self.filtered, width=width
            )
            return self.strip(drawn, width=width)
        return super().render_line(y)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Opening and marking only where there is a session."""
        if action in ("open", "mark"):
            return bool(self.rows)
        return super().check_action(action, parameters)

"""The table of Home: sessions under section lines, filtered and ordered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from tui.cockpit.draw.lines import Line
from tui.cockpit.screens.home.home_view import COLUMNS, ORDERS, section_line, sections
from tui.cockpit.widgets.sectioned_table import SectionedTable
from tui.diagnostics import Complaint
from tui.facts.filters import Filter, parse
from tui.facts.session_fields import SESSION_FIELDS
from tui.facts.tables import Row
from tui.facts.vocabulary import counted

if TYPE_CHECKING:
    from sessions.catalog import SessionInfo

NO_MATCH = "\nNo session matches the filter. escape shows all sessions."


class SessionTable(SectionedTable):
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
        shown = sum(not self.is_heading(row) for row in self.rows)
        return f"{shown} of {counted(len(self.infos), 'session')}" if text else ""

    def next_order(self) -> None:
        """Order by the next of `ORDERS`."""
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        self._fill()
        self.refresh()

    def heading_line(self, row: Row, width: int) -> Line:
        """Return a section's line over the whole width."""
        return section_line(row.key, row.cells[0].text, order=self.order, filtered=self.filtered, width=width)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Opening and marking only where there is a session."""
        if action in ("open", "mark"):
            return bool(self.rows)
        return super().check_action(action, parameters)

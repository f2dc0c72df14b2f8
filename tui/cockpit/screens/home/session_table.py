"""The table of Home: sessions under section lines, filtered and ordered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from tui.cockpit.screens.home.home_view import (
    COLUMNS,
    NOT_FINISHED,
    section_of,
    session_row,
)
from tui.cockpit.widgets.table import LineTable
from tui.facts.filters import Value
from tui.facts.session_fields import SESSION_FIELDS, session_fields
from tui.facts.tables import Cell, Row

if TYPE_CHECKING:
    from sessions.catalog import SessionInfo


class SessionTable(LineTable):
    """One row a session, under lines for running and finished sessions."""

    NO_MATCH = "\nNo session matches the filter. escape shows all sessions."
    NOUN = "session"
    HELP = """\
One row a session. `enter` opens it: live while it runs, else as a replay at
its end. The preview has its winners, its last error and its size.

solved     tasks with a correct attempt, of all tasks
confirmed  tasks whose best attempt passed the exam
best       measured speedup and its 95 % interval; green if that is above 1,
           also for the exact cases alone
cost       spent, and the cap if there is one

Filter: `softmax`, `state:crashed`, `model:qwen`, `speedup>1.2`,
`-method:tune`.
"""

    def __init__(self, *, empty: str, id: str | None = None) -> None:
        super().__init__(COLUMNS, empty=empty, id=id)
        self.infos: Mapping[str, SessionInfo] = {}
        """Sessions by name."""

    @property
    def current(self) -> SessionInfo | None:
        """The session under the cursor."""
        return self.infos.get(self.cursor_key or "")

    def show(self, infos: Sequence[SessionInfo]) -> None:
        """Show these sessions, the newest first."""
        self.infos = {info.name: info for info in infos}
        newest = sorted(infos, key=lambda info: info.name, reverse=True)
        self.set_rows(list(map(session_row, newest)))
        self.refresh()
        self.post_message(self.Moved(self, self.cursor_key))

    def find(self, text: str) -> str:
        """Filter the sessions; see `LineTable.find`."""
        answer = super().find(text)
        self.post_message(self.Moved(self, self.cursor_key))
        return answer

    def arranged(self, rows: list[Row]) -> list[Row]:
        """Return running, unfinished, then finished sessions, each part under its line; a part without rows is left out."""
        remark = Cell(f" filter: {self.filtered} " if self.filtered else "", "dim")
        shown: list[Row] = []
        for title in ("Running", NOT_FINISHED, "Finished"):
            part = [row for row in rows if section_of(self.infos[row.key]) == title]
            if part:
                style = "busy bold" if title == "Running" else "bold"
                name = Cell(f" {title} {len(part)} ", style)
                shown += [Row(f"# {title}", (name, remark), between=True), *part]
        return shown

    def fields(self, row: Row) -> Mapping[str, Value]:
        """Return the fields of a session."""
        return session_fields(self.infos[row.key])

    def field_names(self) -> Collection[str]:
        """Return the fields of every session."""
        return SESSION_FIELDS

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Opening only where there is a session."""
        if action == "open":
            return bool(self.rows)
        return super().check_action(action, parameters)

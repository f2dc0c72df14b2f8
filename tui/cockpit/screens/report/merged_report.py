"""The winners of several sessions in one table, read from the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from sessions.errors import SessionsError
from tui.cockpit.desk.messages import OpenSession
from tui.cockpit.desk.writing import write_reports
from tui.cockpit.dialogs.layers import ClosesOnce, LayeredScreen
from tui.cockpit.draw.lines import line
from tui.cockpit.screens.report import report_view
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.key_bar import KeyBar
from tui.cockpit.widgets.table import LineTable
from tui.facts.report import SessionReport, merged_section
from tui.facts.vocabulary import counted

HELP = """\
The winners of the marked sessions, by task, the fastest first. `enter` opens
the session. Rows with different baselines or devices do not compare.
"""


class MergedReportScreen(ClosesOnce, LayeredScreen[None]):
    """Reads sessions in a thread and shows their winners; `O` writes the whole reports to files."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("O", "write", "write files", id="report.write"),
        Binding("escape", "back", "back", id="screen.back", key_display="esc"),
    ]

    def __init__(
        self, sessions: Sequence[str], *, read: Callable[[str], SessionReport], registry: Path | None = None
    ) -> None:
        super().__init__()
        self._registry = registry
        self._sessions = tuple(sessions)
        self._read = read
        self.reports: list[SessionReport] = []
        self.head = Bar(id="header", classes="header")
        self.remark = Bar(id="summary")
        self.winners = LineTable(merged_section(()).columns, help=HELP, id="merged")

    def compose(self) -> ComposeResult:
        """Header, a remark, the winners, keys."""
        yield self.head
        yield self.remark
        yield self.winners
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        """Read the sessions."""
        self.head.show(line(f"Report of {counted(len(self._sessions), 'session')}", "key"))
        self.winners.focus()
        self.app.run_worker(self._load, name="reading the sessions", thread=True, exit_on_error=False)

    def _load(self) -> None:
        reports, failures = [], []
        for number, session in enumerate(self._sessions, start=1):
            progress = f"reading session {number} of {len(self._sessions)}: {session} ..."
            self.app.call_from_thread(self.remark.show, line(progress, "dim"))
            try:
                reports.append(self._read(session))
            except (OSError, SessionsError) as error:
                failures.append(f"{session} was not read: {error}")
        self.app.call_from_thread(self._show, reports, failures)

    def _show(self, reports: list[SessionReport], failures: list[str]) -> None:
        self.reports = reports
        section = merged_section(reports)
        self.remark.show(line("; ".join((*failures, *section.sentences)), "warn"))
        self.winners.empty = "No task of these sessions is solved."
        self.winners.set_rows(report_view.shown_rows(section))

    @on(LineTable.Opened, "#merged")
    def _open_session(self, message: LineTable.Opened) -> None:
        self.post_message(OpenSession(message.key.partition("|")[0]))

    def action_back(self) -> None:
        """Go back to the list of sessions."""
        self.dismiss()

    def action_write(self) -> None:
        """Write the reports as Markdown, HTML and CSV into the current folder."""
        if self.reports:
            write_reports(self.app, self.reports, self._registry)

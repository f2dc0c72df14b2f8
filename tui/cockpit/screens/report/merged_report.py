"""The report of several sessions, as `wavedeck report` prints it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from sessions.home import Home
from tui.cockpit.desk.writing import run_report, write_reports
from tui.cockpit.dialogs.layers import ClosesOnce, LayeredScreen
from tui.cockpit.draw.lines import clean, line
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.key_bar import KeyBar
from tui.cockpit.widgets.line_view import LineView
from tui.diagnostics import Complaint
from tui.facts.vocabulary import counted

HELP = """\
The tables of the marked sessions, as `wavedeck report SESSION SESSION` prints
them. Tables without data are left out, and so are columns that do not fit;
a wider terminal or the files have these columns. `O` writes them to files, with the
kernels of the winners and the decisions of people.

To see the cases and attempts of one session, open its own report: at Home,
unmark all sessions, go to it, and press `R`.
"""


class MergedReportScreen(ClosesOnce, LayeredScreen[None]):
    """Shows the tables of sessions, which another process computes; `O` writes the report to files."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("O", "write", "write files", id="report.write"),
        Binding("escape", "back", "back", id="screen.back", key_display="esc"),
    ]

    def __init__(self, sessions: Sequence[str], home: Home, run: Callable[..., str] = run_report) -> None:
        """`run` returns the text of a report of a home, as `run_report` does."""
        super().__init__()
        self._sessions = tuple(sessions)
        self._home = home
        self._run = run
        self.head = Bar(id="header", classes="header")
        self.page = LineView(help=HELP, id="merged")

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.page
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        self.head.show(line(f"Report of {counted(len(self._sessions), 'session')}", "key"))
        self.page.focus()

    @on(LineView.Resized)
    def _read(self) -> None:
        self.page.show([line(f"reading {counted(len(self._sessions), 'session')} ...", "dim")])
        self.app.run_worker(
            self._load,
            name="reading the sessions",
            group="report",
            exclusive=True,
            thread=True,
            exit_on_error=False,
        )

    def _load(self) -> None:
        try:
            text, style = self._run(self._home, self._sessions, columns=max(self.size.width - 3, 40)), ""
        except (OSError, Complaint) as error:
            text, style = str(error), "warn"
        lines = [line(clean(row), style) for row in text.splitlines()]
        self.app.call_from_thread(self.page.show, lines)

    def action_back(self) -> None:
        self.dismiss()

    def action_write(self) -> None:
        write_reports(self.app, self._home, self._sessions)

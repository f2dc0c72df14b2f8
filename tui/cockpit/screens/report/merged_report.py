"""The report of several sessions, read from the store: the tables that `wavedeck report` prints for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from sessions.errors import SessionsError
from tui.cockpit.desk.writing import write_reports
from tui.cockpit.dialogs.layers import ClosesOnce, LayeredScreen
from tui.cockpit.draw.grid import spaced, table_lines
from tui.cockpit.draw.lines import line
from tui.cockpit.screens.report.comparison import section_lines
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.key_bar import KeyBar
from tui.cockpit.widgets.line_view import LineView
from tui.facts.report import SessionReport
from tui.facts.tables import named_values
from tui.facts.vocabulary import counted

if TYPE_CHECKING:
    from tui.facts.report.document import Document

HELP = """\
The tables of the marked sessions, as `wavedeck report SESSION SESSION` prints
them. Tables without data are left out, and so are columns that do not fit;
a wider terminal or the files have these columns. `O` writes them to files, with the
kernels of the winners and the decisions of people.

To see the cases and attempts of one session, open its own report: at Home,
unmark all sessions, go to it, and press `R`.
"""


class MergedReportScreen(ClosesOnce, LayeredScreen[None]):
    """Reads sessions in a thread and shows their tables; `O` writes the report to files."""

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
        self._failures: list[str] = []
        self._reports: list[SessionReport] = []
        self._document: Document | None = None
        self.head = Bar(id="header", classes="header")
        self.page = LineView(help=HELP, id="merged")

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.page
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        self.head.show(line(f"Report of {counted(len(self._sessions), 'session')}", "key"))
        self.page.focus()
        self.app.run_worker(self._load, name="reading the sessions", thread=True, exit_on_error=False)

    def _load(self) -> None:
        # Imported here: the app starts without the tables of reports.
        from tui.facts.report.reading import ReportReader

        for number, session in enumerate(self._sessions, start=1):
            progress = f"reading session {number} of {len(self._sessions)}: {session} ..."
            self.app.call_from_thread(self.page.show, [line(progress, "dim")])
            try:
                self._reports.append(self._read(session))
            except (OSError, SessionsError) as error:
                self._failures.append(f"{session} was not read: {error}")
        if self._reports:
            reader = ReportReader(self._reports, self._registry)
            self._document = reader.document(kernels=False, metrics=False)
        self.app.call_from_thread(self._draw)

    @on(LineView.Resized)
    def _draw(self) -> None:
        blocks = [[line(failure, "warn") for failure in self._failures]]
        if self._document is not None:
            width = max(self.size.width - 3, 20)
            facts = named_values("", self._document.facts.items())
            blocks += [table_lines(facts, width)]
            sections = (part for part in self._document.sections if part.rows or part.sentences)
            blocks += [section_lines(section, width) for section in sections]
        if any(blocks):
            self.page.show(spaced(blocks))

    def action_back(self) -> None:
        self.dismiss()

    def action_write(self) -> None:
        if self._reports:
            write_reports(self.app, self._reports, self._registry)

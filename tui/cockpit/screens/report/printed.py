"""Pages that commands print, of several sessions: their tables, and the comparison of two at equal budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from sessions.home import Home
from sessions.metrics.equal_budget import EqualCost
from tui.cockpit.desk.writing import run_command, write_reports
from tui.cockpit.dialogs.layers import ClosesOnce, LayeredScreen
from tui.cockpit.draw.grid import paragraph
from tui.cockpit.draw.lines import line
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.key_bar import KeyBar
from tui.cockpit.widgets.line_view import LineView
from tui.diagnostics import Complaint
from tui.facts.vocabulary import counted

BACK = Binding("escape", "back", "back", id="screen.back", key_display="esc")


class PrintedScreen(ClosesOnce, LayeredScreen[None]):
    """Shows what a command prints about sessions; it runs in a process of its own."""

    HELP: ClassVar[str]

    def __init__(self, sessions: Sequence[str], home: Home, run: Callable[..., str] = run_command) -> None:
        """`run` returns the output of a command in a home, as `run_command` does."""
        super().__init__()
        self._sessions = tuple(sessions)
        self._home = home
        self._run = run
        self.head = Bar(id="header", classes="header")
        self.page = LineView(help=self.HELP, id="printed")

    def title_and_command(self) -> tuple[str, list[str]]:
        """Return the title of the page, and the words of the command."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.page
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        self.page.focus()

    @on(LineView.Resized)
    def read(self) -> None:
        """Run the command for the present width."""
        self.head.show(line(self.title_and_command()[0], "key"))
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
        title, words = self.title_and_command()
        width = max(self.size.width - 3, 40)
        try:
            lines = [line(row) for row in self._run(self._home, words, columns=width).splitlines()]
        except (OSError, Complaint) as error:
            lines = paragraph(str(error), width, "warn")
        if title == self.title_and_command()[0]:  # a person may have chosen another budget since
            self.app.call_from_thread(self.page.show, lines)

    def action_back(self) -> None:
        self.dismiss()


class MergedReportScreen(PrintedScreen):
    """The report of several sessions; `O` writes it to files."""

    HELP = """\
The tables of the marked sessions, as `wavedeck report SESSION SESSION` prints
them. Tables without data are left out, and so are columns that do not fit;
a wider terminal or the files have these columns. `O` writes them to files, with the
kernels of the winners.

To see the cases and attempts of one session, open its own report: at Home,
unmark all sessions, go to it, and press `R`.
"""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("O", "write", "write files", id="report.write"), BACK]

    def title_and_command(self) -> tuple[str, list[str]]:
        return f"Report of {counted(len(self._sessions), 'session')}", ["report", *self._sessions]

    def action_write(self) -> None:
        write_reports(self.app, self._home, self._sessions)


class ComparisonScreen(PrintedScreen):
    """The comparison of two sessions; `b` chooses what is equal."""

    HELP = """\
Two sessions, task by task at equal budget, as `wavedeck compare` prints them.
`b` changes what is equal: attempts, tokens, US dollars, device seconds.

A difference is proven if its p, corrected for the number of comparisons, is
at most 0.05. Speedups are compared if the same hardware and software timed both
against the same baseline.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "budget", "equal budget", id="compare.budget"),
        BACK,
    ]
    budget = EqualCost.ATTEMPTS

    def title_and_command(self) -> tuple[str, list[str]]:
        title = f"A and B compared at equal {self.budget.unit}"
        return title, ["compare", *self._sessions, "--at", self.budget.value]

    def action_budget(self) -> None:
        budgets = list(EqualCost)
        self.budget = budgets[(budgets.index(self.budget) + 1) % len(budgets)]
        self.read()

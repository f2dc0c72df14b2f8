"""Two sessions at equal budget: whether a difference is proven, which tasks each solved, and the speedups by task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from sessions.errors import SessionsError
from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.equal_budget import EqualCost
from tui.cockpit.dialogs.layers import ClosesOnce, LayeredScreen
from tui.cockpit.draw.grid import paragraph, spaced, table_lines
from tui.cockpit.draw.lines import Line, line
from tui.cockpit.screens.report.report_view import shown_rows
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.key_bar import KeyBar
from tui.cockpit.widgets.line_view import LineView
from tui.facts.report import Section
from tui.facts.report.comparison import ComparedSides, compare_sides, comparison_facts, comparison_sections
from tui.facts.tables import Table, named_values

HELP = """\
Two sessions, task by task at equal budget. `b` changes what is equal:
attempts, tokens, US dollars, device seconds.

A difference is proven if its p, corrected for the number of comparisons, is
at most 0.05. Speedups are compared if the same hardware and software timed both
against the same baseline.
"""


class ComparisonScreen(ClosesOnce, LayeredScreen[None]):
    """Reads two sessions in a thread and compares them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "budget", "equal budget", id="compare.budget"),
        Binding("escape", "back", "back", id="screen.back", key_display="esc"),
    ]

    def __init__(self, first: str, second: str, *, read: Callable[[str], Sequence[AttemptRow]]) -> None:
        super().__init__()
        self._sessions = (first, second)
        self._read = read
        self._sides: list[Sequence[AttemptRow]] = []
        self._budget = EqualCost.ATTEMPTS
        self.compared: ComparedSides | None = None
        self.head = Bar(id="header", classes="header")
        self.page = LineView(help=HELP, id="comparison")

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.page
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        self.page.focus()
        self.page.show([line(f"reading {' and '.join(self._sessions)} ...", "dim")])
        self._start()

    def _start(self) -> None:
        self.app.run_worker(self._compare, name="comparing", thread=True, exit_on_error=False)

    def _compare(self) -> None:
        """Read the sessions and compare them, in a thread."""
        try:
            self._sides = self._sides or [self._read(session) for session in self._sessions]
            first, second = self._sides
            compared = compare_sides(first, second, self._budget)
        except (OSError, SessionsError) as error:
            words = paragraph(f"Nothing is compared: {error}", max(self.size.width - 3, 20), "warn")
            self.app.call_from_thread(self.page.show, words)
        else:
            self.app.call_from_thread(self._show, compared)

    def _show(self, compared: ComparedSides) -> None:
        # A person may have chosen another budget since the thread began.
        if compared.comparison.budget is self._budget:
            self.compared = compared
            self._draw()

    @on(LineView.Resized)
    def _draw(self) -> None:
        self.head.show(line(f"A and B compared at equal {self._budget.unit}", "key"))
        if self.compared is not None:
            width = max(self.size.width - 3, 20)
            facts = named_values("", comparison_facts(self.compared).items())
            sections = [section_lines(section, width) for section in comparison_sections(self.compared)]
            self.page.show(spaced([table_lines(facts, width), *sections]))

    def action_budget(self) -> None:
        budgets = list(EqualCost)
        self._budget = budgets[(budgets.index(self._budget) + 1) % len(budgets)]
        if self._sides:
            self._start()

    def action_back(self) -> None:
        self.dismiss()


def section_lines(section: Section, width: int) -> list[Line]:
    """Return a section as lines: title, sentences, table."""
    table = Table("", section.columns, tuple(shown_rows(section)))
    style = "dim" if section.rows else ""
    sentences = [text for sentence in section.sentences for text in paragraph(sentence, width, style)]
    return [*paragraph(section.title, width, "head"), *sentences, *table_lines(table, width)]

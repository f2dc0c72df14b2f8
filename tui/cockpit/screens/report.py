"""The report of a session: winners first, then their cases, then what each attempt changed, then counts and cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widget import Widget

from sessions.names import split_attempt
from tui.cockpit import report_tables, report_view
from tui.cockpit.lines import EMPTY, Line, plain
from tui.cockpit.messages import OpenInstance, OpenLatency
from tui.cockpit.screens.base import SessionScreen
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.line_view import LineView
from tui.cockpit.widgets.table import LineTable
from tui.cockpit.writing_report import write_reports
from tui.report import SessionReport, report_of
from tui.report.bars import Glyphs

GLYPHS = Glyphs()


def text_of(lines: Sequence[Line]) -> str:
    """Return lines as plain text, for copying."""
    return "\n".join(map(plain, lines))


class WinnerTable(LineTable):
    """One row for each task."""

    HELP = """\
The best correct attempt of each task, the fastest first. `enter` opens it.
Below: why the row under the cursor is fast, where its kernel lies, and bars
of all speedups on one scale from 0; `tab` goes there. In a bar: the baseline
at 1x, the interval at its end; > a lower bound, // longer than the scale.

speedup  geometric mean over the cases, against the baseline
         >= 2.65x  a lower bound: some cases are too short for an exact time
95 %     interval of the speedup; green: every case is faster for certain
?  +  =  waits for review, accepted, confirmed by the exam
cases    5/6: five of six cases have a speedup
roof     share of the practical roof, over the cases: of the copy or matrix
         product that this session measured on the device
exam     result on cases that no model sees
by       instance and attempt
"""


class CaseTable(LineTable):
    """One row for each case of a winner."""

    HELP = """\
The cases of each winner. Times are medians in microseconds.

< 18     too short to be timed exactly
outcome  not resolved: the interval contains 1
roof     share of the practical roof, and what limits the case
"""


class ChangeTable(LineTable):
    """One row for each attempt."""

    HELP = """\
Every attempt, by instance. `enter` opens it.

*        the best of its instance
to base  change in speed against its base, on the cases that both timed;
         it has no interval
lines    added and removed against its base
"""


class VerdictTable(LineTable):
    """One row for each verdict and class of error."""

    HELP = "Attempts by verdict and class of error. `enter` opens the newest one."


class ReportScreen(SessionScreen):
    """Shows the report of the open session; it follows a running session and a replay."""

    CSS_PATH = "report.tcss"
    PERIOD_S = 1.0
    PANES: ClassVar[tuple[tuple[str, str], ...]] = (
        ("winners", "winners"),
        ("cases", "cases"),
        ("attempts", "attempts"),
        ("verdicts", "verdicts"),
        ("cost", "cost"),
        ("metrics", "metrics"),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("O", "write", "write files", id="report.write"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.report: SessionReport | None = None
        self.summary = Bar(id="summary")
        self.winners = WinnerTable(report_view.WINNER_COLUMNS, id="winners")
        self.detail = LineView(id="detail")
        self.bars = LineView(id="bars")
        self.cases = CaseTable(report_tables.CASE_COLUMNS, id="cases", empty="No winner was timed.")
        self.changes = ChangeTable(report_tables.CHANGE_COLUMNS, id="attempts", empty="No attempt yet.")
        self.stages = LineView(id="stages")
        self.verdicts = VerdictTable(
            report_tables.VERDICT_COLUMNS, id="verdicts", empty="No attempt was judged yet."
        )
        self.spent = LineView(id="spent")
        self.costs = LineTable(report_tables.COST_COLUMNS, id="costs", empty="No task yet.")
        self.metrics = LineTable(
            report_tables.METRIC_COLUMNS, id="metrics", empty="No attempt was judged yet."
        )
        self._pane = "winners"
        self._panes: dict[str, tuple[Widget, ...]] = {
            "winners": (self.detail, self.bars),
            "cases": (self.cases,),
            "attempts": (self.changes,),
            "verdicts": (self.stages, self.verdicts),
            "cost": (self.spent, self.costs),
            "metrics": (self.metrics,),
        }

    def middle(self) -> Iterable[Widget]:
        """The summary, the winners, and one pane below."""
        yield self.summary
        yield self.tab_bar
        yield self.winners
        yield Horizontal(self.detail, self.bars, id="lower-winners")
        panes = (pane for name, pane in self._panes.items() if name != "winners")
        yield Vertical(*(widget for pane in panes for widget in pane), id="lower")

    def on_mount(self) -> None:
        """Draw, and put the keys on the winners."""
        super().on_mount()
        self._choose("winners")

    def draw(self, dirty: frozenset[str]) -> None:
        """Build the report again and show it."""
        report = self.report = report_of(self.feed.state)
        self.summary.show(report_view.summary_line(report, self.size.width - 1))
        self.winners.empty = report_view.no_winner_words(report)
        self.winners.set_rows(report_view.winner_rows(report))
        self._place()
        self._fill()

    def _fill(self) -> None:
        """Show the chosen pane; the others are filled when they are chosen."""
        report = self.report
        if report is None:
            return
        width = max(self.size.width - 3, 20)
        match self._pane:
            case "winners":
                self._show_detail(report, width)
            case "cases":
                self.cases.set_rows(report_tables.case_rows(report))
            case "attempts":
                self.changes.set_rows(report_tables.change_rows(report))
            case "verdicts":
                self.stages.show(report_tables.stage_lines(report, width, GLYPHS))
                self.verdicts.set_rows(report_tables.verdict_rows(report))
            case "cost":
                self.spent.show(report_tables.cost_lines(report, width))
                self.costs.set_rows(report_tables.cost_rows(report))
            case _:
                self.metrics.set_rows(report_tables.metric_rows(report))

    def _show_detail(self, report: SessionReport, width: int) -> None:
        """Show why a winner is fast beside the bars of all, or above them where there is no room for both."""
        beside = not self.tabbed
        cells = width // 2 - 2 if beside else width
        facts = report_view.winner_lines(report, self.winners.cursor_key, cells)
        bars = report_view.bar_lines(report, cells, GLYPHS)
        self.bars.show(bars if beside else [], copy_text=text_of(bars))
        gap = [EMPTY] if bars and facts else []
        lines = facts if beside else [*facts, *gap, *bars]
        self.detail.show(lines, copy_text=text_of(lines))

    def _place(self) -> None:
        alone = self.tabbed and self._pane != "winners"
        self.winners.display = not alone
        self.tab_bar.show(self.tabs(self._pane, list(self._panes)))
        for name, widgets in self._panes.items():
            for widget in widgets:
                widget.display = name == self._pane
        self.bars.display = not self.tabbed
        self.query_one("#lower-winners").display = self._pane == "winners"
        self.query_one("#lower").display = self._pane != "winners"

    def _choose(self, name: str) -> None:
        self._pane = name
        self._place()
        self._fill()
        target = self.winners if name == "winners" else self._panes[name][-1]
        target.focus()

    def action_pane(self, number: int) -> None:
        """Go to a pane."""
        self._choose(self.PANES[number - 1][0])

    @property
    def _attempt(self) -> str | None:
        """The attempt under the cursor; `None` in a row without one."""
        tables = {"cases": self.cases, "attempts": self.changes, "verdicts": self.verdicts}
        key = tables.get(self._pane, self.winners).cursor_key or ""
        name = key.partition("|")[0]
        return name if "/" in name and not name.startswith("task:") else None

    def destination(self, name: str) -> Message | None:
        """Return the way to another screen; Latency opens at the attempt under the cursor."""
        if name == "report":
            return None
        if name == "latency":
            return OpenLatency(self._attempt) if self._attempt is not None else None
        return super().destination(name)

    def jump(self, kind: str, direction: int) -> bool:
        """Move the cursor to the next winner that waits, best attempt or failed attempt."""
        if self.report is None:
            return False
        if kind == "waiting":
            self._choose("winners")
            return self._jump_in(self.winners, report_tables.waiting(self.report), direction, wraps=True)
        self._choose("attempts")
        keys = report_tables.bests(self.report) if kind == "best" else report_tables.failures(self.report)
        return self._jump_in(self.changes, keys, direction)

    @staticmethod
    def _jump_in(table: LineTable, keys: Iterable[str], direction: int, *, wraps: bool = False) -> bool:
        wanted = set(keys)
        places = [place for place, row in enumerate(table.rows) if row.key in wanted]
        after = [place for place in places if (place - table.cursor) * direction > 0]
        if wraps:
            after = after or [place for place in places if place != table.cursor]
        if not after:
            return False
        table.select(table.rows[min(after) if direction > 0 else max(after)].key)
        return True

    @on(LineTable.Moved, "#winners")
    def _show_winner(self) -> None:
        if self._pane == "winners":
            self._fill()
        elif self._pane == "cases":
            rows = [row.key for row in self.cases.rows if row.key.startswith(f"{self.winners.cursor_key}|")]
            if rows:
                self.cases.select(rows[0])
        self.refresh_bindings()

    @on(LineTable.Opened)
    def _open_attempt(self) -> None:
        attempt = self._attempt
        if attempt is not None:
            name = split_attempt(attempt)
            self.post_message(OpenInstance(name.instance, name.number))

    def action_write(self) -> None:
        """Write the report as Markdown, HTML and CSV into the current folder."""
        if self.report is not None:
            write_reports(self.app, [self.report])

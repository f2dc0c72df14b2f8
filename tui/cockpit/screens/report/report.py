"""The report of a session: winners first, then their cases, then what each attempt changed, then counts and cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget

from sessions.names import split_attempt
from sessions.state.state import SessionState
from tui.cockpit.desk.messages import OpenInstance, OpenLatency
from tui.cockpit.draw.grid import spaced
from tui.cockpit.draw.lines import line
from tui.cockpit.screens.base import SessionScreen
from tui.cockpit.screens.report import report_view
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.line_view import LineView
from tui.cockpit.widgets.table import MARGIN, LineTable
from tui.facts.report import PANES, Section, SessionReport, facts_of, report_of
from tui.facts.report.section import Bars
from tui.facts.report.winner_sections import WINNER_COLUMNS

EMPTY_REPORT = report_of(SessionState())


def attempt_of(key: str) -> str | None:
    """Return the attempt that a row is about; `None` for a row about a task, a stage or a metric."""
    name = key.partition("|")[0]
    return name if "#" in name and not name.startswith("task:") else None


WINNERS_HELP = """\
The best correct attempt of each task, the fastest first, then the closest
attempt of each task that is not solved. `enter` opens the attempt.
Below: what does not fit, why the attempt under the cursor is fast, where its
kernel lies, and bars of all speedups; `tab` goes there.

speedup  geometric or time-weighted mean over the cases, against the
         baseline
         >= 2.65x  a lower bound: some cases are too short for an exact time
95 %     interval of the speedup; green: above 1, also for the exact cases alone
! ? + =  has findings, waits for review, accepted, confirmed by the exam
cases    5 of 6: five of six cases have a speedup
roof     share of the practical roof, over the cases: of the copy or matrix
         product that this session measured on the device
exam     result on cases that no model sees
"""
HELP = {
    "cases": """\
The timed cases of each winner.

<18.0    too short to be timed exactly: it takes less than this
outcome  not resolved: the interval contains 1
share of roof  behind it: what limits the case
""",
    "attempts": """\
Every attempt, by instance. `enter` opens it.

*        the best of its instance
to base  change in speed against its base, on the cases that both timed;
         it has no interval; a case that only one timed exactly is left out
lines    added and removed against its base
""",
    "verdicts": "Attempts by stage, and by verdict and class of error. `enter` opens the newest one.",
    "decisions": """\
What people accepted and rejected, and why. `enter` opens the attempt.

accepted, replaced by  a later accept of the same task put another kernel on
                       the branch accepted
""",
}
"""Help of the tables by pane."""
NOTHING_YET = {
    "cases": "No winner was timed.",
    "decisions": "Nobody accepted or rejected an attempt yet.",
    "cost": "No task yet.",
}


class SectionPane(Vertical):
    """Notes and a table for each section of a pane."""

    def __init__(self, pane: str) -> None:
        super().__init__(id=f"pane-{pane}")
        self.pane = pane
        self.blocks: list[tuple[LineView, LineTable]] = []
        for number, section in enumerate(PANES[pane](EMPTY_REPORT), start=1):
            name = pane if number == 1 else f"{pane}-{number}"
            empty = NOTHING_YET.get(pane, "No attempt was judged yet.")
            table = LineTable(section.columns, id=name, empty=empty, help=HELP.get(pane, ""))
            self.blocks.append((LineView(id=f"notes-{name}", classes="notes"), table))

    @property
    def table(self) -> LineTable:
        """The first table with rows."""
        tables = [table for _, table in self.blocks]
        return next((table for table in tables if table.rows), tables[0])

    def fill(self, report: SessionReport, width: int) -> None:
        """Show the pane's sections; of those without rows, only the first and only if there is no other."""
        sections = PANES[self.pane](report)
        filled = [section for section in sections if section.rows] or [sections[0]]
        for (notes, table), section in zip(self.blocks, sections, strict=True):
            head = [line(section.title, "head")] if len(filled) > 1 else []
            facts = facts_of(report) if self.pane == "cost" else {}
            spent = [facts[name] for name in ("spent", "price", "time") if name in facts]
            lines = [*head, *report_view.note_lines([*spent, *section.sentences], width)]
            notes.show(lines)
            table.set_rows(report_view.shown_rows(section), section.columns)
            notes.display = section in filled and bool(lines)
            table.display = section in filled
            table.set_class(section is filled[-1], "last")


class ReportScreen(SessionScreen):
    """Shows the report of the open session; it follows a running session and a replay."""

    NAME = "report"
    PERIOD_S = 1.0
    PANES: ClassVar[tuple[tuple[str, str], ...]] = tuple((pane, pane) for pane in PANES)

    def __init__(self) -> None:
        super().__init__()
        self.report: SessionReport | None = None
        self._last_seq = 0
        """Number of the last event in the report."""
        self._sections: tuple[Section, ...] = ()
        self.summary = Bar(id="summary")
        self.winners = LineTable(WINNER_COLUMNS, help=WINNERS_HELP, id="winners")
        self.detail = LineView(id="detail")
        self.lower = Vertical(id="lower")
        self.panes: dict[str, SectionPane] = {}
        """Panes that were chosen. To make the widgets of all panes takes longer than the rest of the screen's opening."""
        self._pane = "winners"

    def middle(self) -> Iterable[Widget]:
        yield self.summary
        yield self.tab_bar
        yield self.winners
        yield self.lower
        yield self.detail

    def on_mount(self) -> None:
        super().on_mount()
        self._choose("winners")

    def draw(self, dirty: frozenset[str]) -> None:
        """Show the report; it is built again after an event or a jump, not for another width."""
        state = self.feed.state
        if self.report is None or self._last_seq != state.last_seq:
            self.report, self._last_seq = report_of(state), state.last_seq
        report = self.report
        self.summary.show(report_view.summary_line(report, self.size.width - 1))
        self._sections = PANES["winners"](report)
        self.winners.empty = "\n".join(self._sections[0].sentences)
        self.winners.set_rows(report_view.shown_rows(self._sections[0]))
        self._place()
        self._fill()

    def _fill(self) -> None:
        """Show the chosen pane; the others are filled when they are chosen."""
        if self.report is None:
            return
        if self._pane != "winners":
            self.panes[self._pane].fill(self.report, max(self.size.width - 3, 20))
        self._show_detail()

    def _show_detail(self) -> None:
        """Show what the table has no room for; of a winner also why it is fast, and below it the bars of all."""
        width, table = max(self.size.width - 3, 20), self._table
        winners, *texts = self._sections
        key = table.cursor_key or ""
        cut = report_view.cut_cells(table.columns, table.rows, key, width - MARGIN)
        lines = report_view.detail_lines(key, cut, texts if table is self.winners else (), width)
        if table is self.winners:
            speeds = next((plot.speeds for plot in winners.plots if isinstance(plot, Bars)), ())
            notes = (report_view.SCALE,) * bool(speeds) + winners.sentences if winners.rows else ()
            drawn = report_view.bar_lines(speeds, width)
            lines = spaced([lines, drawn, report_view.note_lines(notes, width)])
        self.detail.display = bool(lines)
        self.detail.show(lines)

    def _place(self) -> None:
        is_winners = self._pane == "winners"
        self.tab_bar.show(self.tabs(self._pane, list(PANES)))
        for name, pane in self.panes.items():
            pane.display = name == self._pane
        self.winners.display, self.lower.display = is_winners, not is_winners
        self.detail.set_class(is_winners, "whole")

    @property
    def _table(self) -> LineTable:
        """The table of the chosen pane that has the keys, else its first with rows."""
        if self._pane == "winners":
            return self.winners
        pane = self.panes[self._pane]
        return next((table for _, table in pane.blocks if table is self.focused), pane.table)

    def _choose(self, name: str) -> None:
        self._pane = name
        if name != "winners" and name not in self.panes:
            self._make_pane(name)
        self._place()
        self._fill()
        self._table.focus()

    def _make_pane(self, name: str) -> None:
        pane = self.panes[name] = SectionPane(name)
        self.lower.mount(pane)
        for notes, table in pane.blocks:
            pane.mount(notes, table)

    def action_pane(self, number: int) -> None:
        self._choose(self.PANES[number - 1][0])

    @property
    def _attempt(self) -> str | None:
        """The attempt under the cursor; `None` in a row without one."""
        return attempt_of(self._table.cursor_key or "")

    def destination(self, name: str) -> Message | None:
        """Return the way to another screen; Agent and Latency open at the attempt under the cursor."""
        attempt = self._attempt
        if name == "agent" and attempt is not None:
            place = split_attempt(attempt)
            return OpenInstance(place.instance, place.number)
        if name == "latency" and attempt is not None:
            return OpenLatency(attempt)
        return super().destination(name)

    def jump(self, kind: str, direction: int) -> bool:
        if self.report is None:
            return False
        self._choose("winners" if kind == "waiting" else "attempts")
        table = self.winners if kind == "waiting" else self.panes["attempts"].table
        keys = self.report.attempts_to_visit(kind)
        return table.jump(keys, direction, wraps=kind == "waiting")

    @on(LineTable.Moved)
    def _show_row(self) -> None:
        if self._sections:
            self._show_detail()
        self.refresh_bindings()

    @on(LineTable.Opened)
    def _open_attempt(self, message: LineTable.Opened) -> None:
        attempt = attempt_of(message.key)
        if attempt is not None:
            name = split_attempt(attempt)
            self.post_message(OpenInstance(name.instance, name.number))

"""The times of one attempt: which case is fast on which GPU, and how far it is from the limit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget

from sessions.state.cases import CaseRow
from sessions.state.folding import device_key
from sessions.state.state import AttemptState, InstanceState
from tui.cockpit.data import attempts
from tui.cockpit.data.feed import EVERYTHING
from tui.cockpit.dialogs.dialogs import TextDialog
from tui.cockpit.draw.lines import Line, plain
from tui.cockpit.screens.acting import STEERING, ActingScreen
from tui.cockpit.screens.base import TALL
from tui.cockpit.screens.latency.captions import absence_lines, caption_lines, footnotes, title_lines
from tui.cockpit.screens.latency.cell_facts import detail_lines, dialog_lines
from tui.cockpit.screens.latency.plotted import PLOTS, plot_lines, side_by_side
from tui.cockpit.screens.latency.time_table import Shown, time_table
from tui.cockpit.screens.latency.timings import Timings, gpu_name, timings_of
from tui.cockpit.widgets.line_view import LineView
from tui.cockpit.widgets.table import LineTable

PLOT_ROWS = 11
"""Least rows of a plot where several are on screen."""
PLOT_GAP = 4

PLOTS_HELP = """\
Without a time: the reason, what changed from attempt to attempt, and the
bytes of each case that the interpreter counted at its small sizes.

needed            each input and output once; or what memory moves while the
                  operations run, if more
requested/needed  1.00: no byte is requested twice

With times: plots of the attempt. `tab` shows the next ones, `v` turns the
table above to speedups or clocks, `z` gives the plot the whole screen.
"""


class TimeTable(LineTable):
    """Rows are cases, columns are GPUs."""

    HELP = """\
A row a case, a column a GPU. `h j k l` move to a cell, `enter` shows all its
figures, `v` turns to speedups or clocks, `t` measures the attempt on every
GPU.

base      the timing baseline, on the GPU that the line above names
GPU0 ...  median of the attempt on that GPU
<18       shorter than the launch of a kernel lets one time exactly
!         the GPU held its clock back; it is not in the range
-         not measured; the line below says why
t         asked for, not timed yet
lost      the GPU failed its probe; nothing runs on it any more
W, X, ... the verdict on that GPU, where it is not correct
range     (longest - shortest) / median of the GPUs that are comparable
speedup   baseline over attempt, with the 95 % interval; green only where the
          interval is above 1; `>= 12`: a lower bound, the launch hides the
          rest; `too short`: both sides are too short to compare
roof      share of the practical roof: the fastest copy, or a large matrix
          product, that this session measured on this GPU
limit     memory, compute or launch
"""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "open", "samples", id="latency.samples")]


class LatencyScreen(ActingScreen):
    """Table and plots of one attempt; without a number, of the instance's best."""

    NAME = "latency"
    PANES: ClassVar[tuple[tuple[str, str], ...]] = PLOTS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "value", "value", id="latency.value"),
        Binding("tab", "plot(1)", "plot", id="latency.plot"),
        Binding("shift+tab", "plot(-1)", "plot before", id="latency.plot_back", show=False),
        Binding("z", "zoom", "zoom", id="latency.zoom", show=False),
        Binding(
            "greater_than_sign,right_square_bracket",
            "walk(1)",
            "attempt",
            id="latency.next",
            key_display="<>",
        ),
        Binding(
            "less_than_sign,left_square_bracket",
            "walk(-1)",
            "attempt before",
            id="latency.before",
            show=False,
        ),
        *STEERING,
    ]

    def __init__(self, key: str, number: int | None = None) -> None:
        super().__init__()
        self.key = key
        self.number = number
        self.shown = Shown.TIME
        self.above = LineView(id="above")
        self.times = TimeTable(id="times")
        self.notes = LineView(id="notes")
        self.plots = LineView(help=PLOTS_HELP, id="plots")
        self._plot = 0
        self._zoomed = False
        """True if the plot has the whole screen."""
        self._timings: Timings | None = None
        self._keys_on: Widget | None = None

    @property
    def steered_instance(self) -> InstanceState | None:
        """The instance of the attempt."""
        return self.feed.state.instances.get(self.key)

    @property
    def steered_attempt(self) -> AttemptState | None:
        """The attempt on screen."""
        instance = self.steered_instance
        if instance is None:
            return None
        if self.number is None:
            return instance.best_attempt or next(reversed(instance.attempts), None)
        return next((attempt for attempt in instance.attempts if attempt.number == self.number), None)

    @property
    def steered_case(self) -> str:
        """The case under the cursor."""
        case = self._case(self._timings) if self._timings is not None else None
        return case.case if case is not None else ""

    def middle(self) -> Iterable[Widget]:
        self.above.can_focus = self.notes.can_focus = False
        yield self.above
        yield self.times
        yield self.notes
        yield self.tab_bar
        yield self.plots

    def draw(self, dirty: frozenset[str]) -> None:
        state = self.feed.state
        gpus = {device_key(device) for device in state.devices}
        if not dirty & {EVERYTHING, self.key, *gpus}:
            return
        attempt = self.steered_attempt
        self._timings = timings_of(state, attempt) if attempt is not None else None
        self._show()

    def _show(self) -> None:
        """Show what is known; where nothing was timed, say why."""
        timings, attempt = self._timings, self.steered_attempt
        width = max(self.size.width - 1, 20)
        for widget in (self.times, self.notes):
            widget.display = timings is not None and not self._zoomed
        self.tab_bar.display = timings is not None and (self._zoomed or self.size.height >= TALL)
        title = title_lines(attempt, width) if attempt is not None else []
        if timings is None:
            self.above.show(title)
            name = self.key if self.number is None else f"{self.key}/{self.number}"
            instance = self.steered_instance
            lines = absence_lines(attempt, name, width, instance.attempts if instance is not None else ())
            self.plots.show(lines, copy_text="\n".join(map(plain, [*title, *lines])))
            self._put_keys(self.plots)
            return
        first = not self.times.rows
        table = time_table(timings, self.shown)
        self.times.set_rows(table.rows, table.columns)
        if first:
            self.times.select_cell(gpu_name(timings.device))
        self.above.show([*title, *caption_lines(timings, self.shown, width, self.times.shown_titles)])
        self._show_cell(timings)
        self.times.source = self._text()
        self._put_keys(self.plots if self._zoomed else self.times)

    def _put_keys(self, pane: Widget) -> None:
        """Give the keys to a pane, unless it was the last that got them here."""
        if pane is not self._keys_on:
            self._keys_on = pane
            pane.focus()

    def _show_cell(self, timings: Timings) -> None:
        """Show what depends on the cell under the cursor."""
        width = max(self.size.width - 1, 20)
        texts = [cell.text for row in self.times.rows for cell in row.cells]
        case = self._case(timings)
        notes = [] if case is None else detail_lines(timings, case, self.times.cell_key or "", width)
        notes += footnotes(timings, width, texts, can_measure=bool(self.check_action("measure", ())))
        self.notes.show(notes)
        self.tab_bar.show(self.tabs(PLOTS[self._plot][0], [name for name, _ in PLOTS]))
        self.show_plots()

    @on(LineView.Resized)
    def show_plots(self) -> None:
        """Draw as many plots as fit, the chosen one first."""
        timings, instance = self._timings, self.steered_instance
        case = self._case(timings) if timings is not None else None
        if timings is None or instance is None or case is None:
            return
        width, height = max(self.size.width - 2, 20), max(self.plots.size.height, 3)
        columns = 1 if self.tabbed else 2
        rows = 1 if self.tabbed else max(1, height // PLOT_ROWS)
        plot_width = (width - PLOT_GAP * (columns - 1)) // columns
        count = min(len(PLOTS), columns * rows)
        rows = -(-count // columns)
        names = [PLOTS[(self._plot + place) % len(PLOTS)][0] for place in range(count)]
        ascii = self.desk.preferences.ascii
        blocks = [
            plot_lines(name, timings, instance, case, plot_width, height // rows - (rows > 1), ascii=ascii)
            for name in names
        ]
        lines: list[Line] = []
        for place in range(0, len(blocks), columns):
            if columns == 1:
                lines += blocks[place]
            else:
                second = blocks[place + 1] if place + 1 < count else []
                lines += side_by_side(blocks[place], second, plot_width + PLOT_GAP, height // rows)
        self.plots.show(lines)

    def _case(self, timings: Timings) -> CaseRow | None:
        key = self.times.cursor_key
        return next((case for case in timings.cases if case.case == key), None)

    def _text(self) -> str:
        above, notes = (list(map(plain, view.lines)) for view in (self.above, self.notes))
        return "\n".join([*above, self.times.text, *notes])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Values and plots only where there are times."""
        if action in ("value", "plot", "pane", "zoom") and self._timings is None:
            return False
        return super().check_action(action, parameters)

    def action_pane(self, number: int) -> None:
        self._plot = number - 1
        if self._timings is not None:
            self._show_cell(self._timings)

    def action_plot(self, steps: int) -> None:
        """Show the next plot, or the one before."""
        self.action_pane((self._plot + steps) % len(PLOTS) + 1)

    def action_value(self) -> None:
        self.shown = self.shown.next
        self._show()

    def action_zoom(self) -> None:
        self._zoomed = not self._zoomed
        self._show()

    def action_back(self) -> None:
        """Leave the zoom, else the screen."""
        if self._zoomed:
            self.action_zoom()
        else:
            super().action_back()

    def action_walk(self, steps: int) -> None:
        instance, attempt = self.steered_instance, self.steered_attempt
        if instance is None or attempt is None:
            return
        numbers = [sibling.number for sibling in instance.attempts]
        place = numbers.index(attempt.number) + steps
        self._go_to(numbers[min(max(place, 0), len(numbers) - 1)])

    def jump(self, kind: str, direction: int) -> bool:
        instance, attempt = self.steered_instance, self.steered_attempt
        if instance is None or attempt is None:
            return False
        target = attempts.next_of_kind(instance, attempt.number, kind, direction)
        if target is not None:
            self._go_to(target.number)
        return target is not None

    def _go_to(self, number: int) -> None:
        self.number = number
        self.draw(frozenset((EVERYTHING,)))
        self.refresh_bindings()

    @on(LineTable.Moved, "#times")
    def show_moved(self) -> None:
        """Show the cell under the cursor, and which GPUs are on screen."""
        if self._timings is not None:
            self._show()

    @on(LineTable.Opened, "#times")
    def show_figures(self) -> None:
        """Show all figures of the cell under the cursor."""
        timings = self._timings
        case = self._case(timings) if timings is not None else None
        if timings is not None and case is not None:
            column = self.times.cell_key or ""
            title = f"{timings.attempt.attempt}  case {case.case}  {column}"
            self.app.push_screen(TextDialog(title, dialog_lines(timings, case, column)))

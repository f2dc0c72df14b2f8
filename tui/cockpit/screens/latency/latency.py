"""One attempt: which case is fast on which GPU and how far from the limit; without times, what changed since the last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget

from sessions.names import split_attempt
from sessions.state.cases import CaseRow
from sessions.state.folding import device_key
from sessions.state.state import AttemptState, InstanceState
from tui.cockpit.data import attempts
from tui.cockpit.data.feed import EVERYTHING
from tui.cockpit.desk.messages import OpenInstance, OpenLatency
from tui.cockpit.dialogs.dialogs import TextDialog
from tui.cockpit.draw.grid import paragraph
from tui.cockpit.draw.lines import EMPTY, Line, plain
from tui.cockpit.screens.acting import STEERING, ActingScreen
from tui.cockpit.screens.base import TALL
from tui.cockpit.screens.latency.captions import absence_lines, caption_lines, footnotes, title_lines
from tui.cockpit.screens.latency.cell_facts import detail_lines, dialog_lines
from tui.cockpit.screens.latency.plotted import PLOTS, plot_lines, side_by_side
from tui.cockpit.screens.latency.time_table import Shown, time_table
from tui.cockpit.screens.latency.timings import Timings, gpu_name, timings_of
from tui.cockpit.widgets.line_view import LineView
from tui.cockpit.widgets.table import LineTable
from tui.facts.evaluation.counted import steps_table, steps_words

PLOT_ROWS = 7
"""Least rows of a plot where others are above it."""
PLOT_GAP = 4

PLOTS_HELP = """\
Without a time: the bytes of each case that the interpreter counted at its
small sizes, each compiled kernel, and the strategy of the attempt.

needed        each input and output once; or what memory moves while the
              operations run, if more
moved/needed  1.00: no byte is moved twice

With times: plots of the attempt. `tab` shows the next ones, `v` turns the
table above to speedups or clocks, `z` gives the plot the whole screen.
"""
STEPS_HELP = """\
The attempts of the instance. `j k` show another attempt, `enter` opens it,
`tab` goes to the text below.

moved/needed  bytes that loads and stores move over bytes that are needed;
              1.00x: no byte is moved twice; elsewhere called traffic
launches      the most launches that a call needs
registers     of a lane; the most of its kernels
spills        registers (AMD) or bytes (NVIDIA) of all kernels
LDS           shared memory of a workgroup; the most of its kernels
occupancy     waves of a SIMD (AMD), warps of an SM (NVIDIA) that fit; the
              least of its kernels
waits         instructions that wait for memory; the most of its kernels
*             the best of the instance
▴ ▾           more, less than in the attempt that it was made from
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
        Binding("tab", "text", "text below", id="latency.text"),
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
        self.steps = LineTable(help=STEPS_HELP, id="attempts")
        """The attempts of the instance with their figures, where the attempt on screen has no times."""
        self._steps_of: list[tuple[str | None, str, int]] = []
        """Best of the instance, name and verdict of the attempts in `steps`."""
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
        yield self.steps
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
        self.times.display = timings is not None and not self._zoomed
        self.steps.display = timings is None and attempt is not None
        self.notes.display = self.steps.display or self.times.display
        self.tab_bar.display = timings is not None and (self._zoomed or self.size.height >= TALL)
        title = title_lines(attempt, width) if attempt is not None else []
        if timings is None:
            self.above.show(title)
            name = self.key if self.number is None else f"{self.key}/{self.number}"
            lines, instance = absence_lines(attempt, name, width), self.steered_instance
            if instance is not None and attempt is not None:
                self._show_steps(instance, attempt)
                self.notes.show(paragraph(steps_words(attempt), width, "dim"))
            self.plots.show(lines, copy_text="\n".join(map(plain, [*title, *lines])))
            self._put_keys(self.plots if attempt is None else self.steps)
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

    def _show_steps(self, instance: InstanceState, shown: AttemptState) -> None:
        """Show what changed from attempt to attempt, with the cursor on the attempt on screen."""
        steps_of = [(instance.best, attempt.attempt, attempt.judged_seq) for attempt in instance.attempts]
        if steps_of != self._steps_of:  # to read all evaluations at each piece of a reply would be slow
            self._steps_of = steps_of
            table = steps_table(instance)
            self.steps.set_rows(table.rows, table.columns)
        if self.steps.cursor_key != shown.attempt:
            self.steps.select(shown.attempt)

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
        timings = self._timings
        if timings is None:
            return
        width, room = max(self.size.width - 2, 20), max(self.plots.size.height, 3)
        names = [
            PLOTS[(self._plot + place) % len(PLOTS)][0] for place in range(1 if self.tabbed else len(PLOTS))
        ]
        columns = min(len(names), 2)
        plot_width = (width - PLOT_GAP * (columns - 1)) // columns
        lines: list[Line] = []
        while names and (room >= PLOT_ROWS or not lines):
            shown, names = names[:columns], names[columns:]
            height = room - PLOT_ROWS - 1 if names and room > 2 * PLOT_ROWS else room
            blocks = [plot_lines(name, self.feed.state, timings, plot_width, height) for name in shown]
            used = max(map(len, blocks))
            lines += [*side_by_side(blocks, plot_width + PLOT_GAP, used), EMPTY]
            room -= used + 1
        self.plots.show(lines[:-1])

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
        if action == "text":
            return self.steps.display
        return super().check_action(action, parameters)

    def action_text(self) -> None:
        """Go from the attempts to the text below, and back."""
        (self.plots if self.steps.has_focus else self.steps).focus()

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

    def message_to(self, attempt: str) -> Message:
        return OpenLatency(attempt)

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

    def show_jumped(self, attempt: str) -> None:
        name = split_attempt(attempt)
        self.key = name.instance
        self._go_to(name.number)

    def _go_to(self, number: int) -> None:
        self.number = number
        self.draw(frozenset((EVERYTHING,)))
        self.refresh_bindings()

    @on(LineTable.Moved, "#attempts")
    def show_attempt(self, message: LineTable.Moved) -> None:
        """Show the attempt under the cursor."""
        attempt = self.steered_attempt
        if self._timings is None and attempt is not None and message.key not in ("", attempt.attempt):
            self._go_to(split_attempt(message.key).number)

    @on(LineTable.Opened, "#attempts")
    def open_attempt(self, message: LineTable.Opened) -> None:
        """Open the attempt under the cursor."""
        name = split_attempt(message.key)
        self.post_message(OpenInstance(name.instance, name.number))

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

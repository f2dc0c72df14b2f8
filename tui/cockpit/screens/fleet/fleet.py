"""Fleet: what every instance does now, what the GPUs do, and what needs a person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.message import Message
from textual.widget import Widget

from sessions.state.state import AttemptState, InstanceState
from tui.actions.line import LineSubject
from tui.cockpit.data.feed import EVERYTHING
from tui.cockpit.desk.messages import LeaveSession, OpenInstance, OpenReview
from tui.cockpit.draw.lines import Line, Span, cells, clean, line
from tui.cockpit.screens.acting import STEERING, ActingScreen
from tui.cockpit.screens.fleet import device_view, fleet_view
from tui.cockpit.screens.fleet.fleet_cells import WIDE
from tui.cockpit.screens.fleet.fleet_latest import latest_lines
from tui.cockpit.screens.fleet.fleet_model import FleetModel
from tui.cockpit.screens.fleet.fleet_view import ORDERS, fleet_table, in_order, rule
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.line_view import LineView
from tui.cockpit.widgets.table import LineTable
from tui.facts.attention import Concern
from tui.facts.doing import preparing
from tui.facts.filters import Value
from tui.facts.instance import InstanceFacts
from tui.facts.tables import Cell, Column, Number, Row
from tui.facts.vocabulary import NO_GPU

NEXT_COLUMNS = (Number("", 1, 3), Column("", 8, 30), Column("", 20, 200))
SIDE_BY_SIDE = 110
"""From this width on, GPUs and Next are side by side."""
GPUS_WIDTH = 78
"""Cells of the table of GPUs with all its columns."""
LOWER_SHARE = 3
"""GPUs and Next get at most one part of so many, unless the tasks leave more."""
STRIP_LINES = 4


class TaskTable(LineTable):
    """A row a task, a cell an instance."""

    MARKS = True
    HELP = """\
One row is a task, one cell is an instance: a chain of attempts on the task.
`hjkl` moves over cells, `enter` opens the instance, `space` marks it; keys
and `:` commands act on all marked instances. `o` orders the rows another way.

g6C     the state, the number of the attempt, the newest verdict: of an
        earlier attempt while this one has none. With a figure (`generate 6
        1.31x`) it is the best speedup of the instance; beside `done`, the
        number is that of the best attempt
!       at the left of a row: an instance waits for you or is stuck
2.1x !  behind a best or a figure: this attempt is correct, with findings
C!      the newest verdict is correct, with findings
stuck !  in red: three attempts in a row failed with the same error
! 2     in the header: how much `next` lists
p       behind a verdict, or `pausing`: paused once this work is over
x       behind a verdict or a figure: a person rejected an attempt of it
▴ ▾ •   for 5 seconds: a better best, a worse one, another verdict

best    the best speedup of the task: geometric mean, or time-weighted if
        its cases have weights, and 95 % interval; green only if the
        interval of the exact cases is above 1. `>=`: a lower bound.
        `traffic 1.10x`: nothing was timed; the kernels request 1.10 times
        the needed bytes at the interpreter's sizes. `2.00x -> 1.10x`: from
        the first correct attempt to the best.
        ! findings, ? waits for a person, + accepted, = confirmed by the exam
by      instance and attempt of the best, `#3/7`
gain    time since the best was found, on the session's clock: the time in the
        header, which runs while an engine works
"""

    states: Mapping[str, str] = {}
    """Keys and states of the instances, by task."""

    def fields(self, row: Row) -> Mapping[str, Value]:
        """Return the task, and the keys and states of its instances."""
        return {"task": row.key, "state": self.states.get(row.key, "")}


GPU_HELP = """\
One line a GPU, or all side by side where there is little room.
t timing (alone on the GPU)   j judging   - idle   l lent to others
! lost, throttled (its clock is held back; it goes on judging), or used by
  somebody else
`-` is a value that this machine does not show, never 0.
"""
NOTHING = "Nothing needs you."
NEXT_HELP = """\
What needs a person, most urgent first: reviews, instances that repeat an
error, GPUs with trouble, a budget above 90 %, a silent model. `enter` goes
there.
The last lines say what the engine prepares: nothing of that needs you.
"""


class FleetScreen(ActingScreen):
    """The session's first screen."""

    NAME = "fleet"
    PANES: ClassVar[tuple[tuple[str, str], ...]] = (("tasks", "tasks"), ("gpus", "GPUs"), ("next", "next"))
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "home", id="screen.back", key_display="esc"),
        Binding("w", "jump('waiting', 1)", "waiting", id="jump.waiting"),
        Binding("o", "order", "order", id="fleet.order"),
        *STEERING,
    ]

    def __init__(self) -> None:
        super().__init__()
        self.tasks = TaskTable(empty="No instance has started yet.", id="tasks")
        self.latest = LineView(id="latest")
        self.gpus = LineView(help=GPU_HELP, id="gpus")
        self.next = LineTable(NEXT_COLUMNS, empty=NOTHING, help=NEXT_HELP, id="next")
        self.tasks_title = Bar()
        self.gpus_title = Bar()
        self.next_title = Bar()
        self.gpus_side = Vertical(self.gpus_title, self.gpus, id="gpus-side")
        self.next_side = Vertical(self.next_title, self.next, id="next-side")
        self.below = Container(self.gpus_side, self.next_side, id="below")
        self._model = FleetModel()
        self._form = WIDE
        """Form of the cells."""
        self._drawn: object = None
        """Values that the rows were made from."""
        self._order = ORDERS[0]
        self._second = -1
        self._places: tuple[bool, int, int, int] | None = None

    def middle(self) -> Iterable[Widget]:
        self.latest.can_focus = False
        yield self.tasks_title
        yield self.tasks
        yield self.latest
        yield self.below

    def on_mount(self) -> None:
        super().on_mount()
        self.tasks.focus()

    @property
    def steered_instance(self) -> InstanceState | None:
        """The instance under the cursor."""
        return self.feed.state.instances.get(self.tasks.cell_key or "")

    @property
    def steered_attempt(self) -> AttemptState | None:
        """The attempt that waits in the instance under the cursor, else its best."""
        instance = self.steered_instance
        if instance is None:
            return None
        facts = self.feed.facts.of(self.feed.state, instance)
        return facts.waiting[0] if facts.waiting else facts.best

    @property
    def subject(self) -> LineSubject:
        """The marked instances, else the one under the cursor."""
        one = super().subject
        marked = tuple(key for key in self.feed.state.instances if key in self.tasks.marked)
        attempt = self.steered_attempt
        word = "the best" if attempt is None or not attempt.waiting else "the one that waits"
        attempt_is = f"{word} of {one.instances[0]}" if one.instances else ""
        return LineSubject(marked or one.instances, one.attempt, attempt_is)

    def repaint(self, dirty: frozenset[str]) -> None:
        """Draw what changed, and once a second what depends on time."""
        super().repaint(dirty)
        if not dirty and self.is_mounted and self.desk.feed is not None:
            self.draw(dirty)

    def draw(self, dirty: frozenset[str]) -> None:
        state, now_wall = self.feed.state, self.desk.wall()
        now = self.desk.clock()
        jumped = EVERYTHING in dirty
        worked_s = state.worked_until(now_wall)
        changed = self._model.update(state, self.feed.facts, now, now_wall=now_wall, jumped=jumped)
        marks = self._model.marks(now)
        made_from = (self.size.width, self._order, marks, int(worked_s // 60))
        if changed or made_from != self._drawn:
            self._drawn = made_from
            tasks = in_order(self._model.tasks, self._order)
            self._form, table = fleet_table(
                tasks,
                self.size.width - 3,
                changes=marks,
                worked_s=worked_s,
            )
            self.tasks.states = {
                task.task: " ".join(f"{facts.key} {facts.doing.word}" for facts in task.instances)
                for task in tasks
            }
            self.tasks.set_rows(table.rows, table.columns)
        second = int(now_wall)
        if changed or second != self._second or any(key.startswith("device:") for key in dirty):
            self._second = second
            self._draw_gpus(now_wall)
            self._draw_next(now_wall)
            self._place()
            if self.tasks.marked - state.instances.keys():
                self.tasks.marked &= state.instances.keys()
        self._draw_titles()
        if changed:
            self.refresh_bindings()

    def _draw_gpus(self, now_wall: float) -> None:
        state = self.feed.state
        names = device_view.gpu_names(state)
        shown = bool(names) and not self.feed.is_over
        if self.gpus_side.display != shown:
            self.gpus_side.display = shown
        if not shown:
            return
        width = self._gpus_width()
        tabular = self.size.width >= SIDE_BY_SIDE and len(names) <= device_view.MOST_LINES
        draw = device_view.gpu_table if tabular else device_view.gpu_strip
        words = device_view.gpu_words(state)
        lines = [line(words, "dim")] if words else draw(state, now_wall=now_wall, width=width)
        self.gpus.show([(Span("  "), *drawn) for drawn in lines])

    def _gpus_width(self) -> int:
        width = self.size.width
        return min(GPUS_WIDTH, width // 2) if width >= SIDE_BY_SIDE else width - 3

    def _draw_next(self, now_wall: float) -> None:
        rows = [
            Row(
                f"{concern.kind}:{concern.subject}:{number if not concern.subject else ''}",
                (
                    Cell(str(number), "dim"),
                    Cell(_about(concern), concern.style),
                    Cell(clean(concern.words).replace("\n", " ")),
                ),
            )
            for number, concern in enumerate(self.concerns, start=1)
        ]
        # What is prepared needs no person, so it has no number and nothing opens it.
        prepared = preparing(self.feed.state.preparing, now_wall) if not self.feed.is_over else []
        rows += [
            Row(f"prepared:{place}", (Cell(""), Cell("session", "dim"), Cell(clean(words), "busy")))
            for place, words in enumerate(prepared)
        ]
        is_undecided = any(
            facts.finished and facts.best is not None and facts.best.decision is None
            for facts in self.feed.facts.all(self.feed.state)
        )
        self.next.empty = f"{NOTHING}{' V has best attempts without a decision.' if is_undecided else ''}"
        self.next.set_rows(rows)

    def _draw_titles(self) -> None:
        width = self.size.width
        narrow = width < SIDE_BY_SIDE
        instances = [facts for task in self._model.tasks for facts in task.instances]
        total, shown = len(self._model.tasks), len(self.tasks.rows)
        top = self.tasks.scroll_offset.y
        visible = min(shown - top, max(1, self.tasks.size.height - 1))
        name = f"Tasks {top + 1}-{top + visible} of {shown}" if visible < shown else f"Tasks {shown}"
        states = fleet_view.counts(instances, short=False)
        if narrow or cells(states) + len(name) + 6 > width:
            states = fleet_view.counts(instances, short=True)
        if not device_view.gpu_names(self.feed.state) and self._drawn is not None:
            name = f"{name} · {NO_GPU}"
        marked = f"marked {len(self.tasks.marked)}  " if self.tasks.marked else ""
        hidden = f"{shown} of {total}" if shown < total else "all"
        right = f"{marked}order: {self._order}  filter: {hidden}"
        self.tasks_title.show(rule(name, states, right, width, focused=self.focused is self.tasks))
        if self.gpus_side.display:
            count = len(device_view.gpu_names(self.feed.state))
            room = width if narrow else self._gpus_width() + 2
            legend = [Span(device_view.LEGEND, "dim")] if narrow else []
            title = rule(f"GPUs {count}", legend, "", room, focused=self.focused is self.gpus)
            self.gpus_title.show(title)
        focused = self.focused is self.next
        waits = [Span("enter goes there" if focused else "w goes there", "dim")] if self.concerns else []
        self.next_title.show(rule(f"Next {len(self.concerns)}", waits, "", width, focused=focused))

    def _place(self) -> None:
        """Give the tasks what they need and the panes below the rest, but at least a third if they need it.

        What neither needs goes to the instance under the cursor and the newest verdicts.
        """
        beside = self.size.width >= SIDE_BY_SIDE
        bars = (self.header_bar, self.screens_bar, self.banner)
        used = sum(bar.display for bar in bars) + len(self.timeline.lines)
        room = self.size.height - 2 - used  # without the title and the keys
        tasks = len(self.tasks.rows) + 1
        gpus = len(self.gpus.lines) + 1 if self.gpus_side.display else 0
        next_lines = max(1, len(self.next.rows)) + 1
        if beside:
            lower = max(gpus, next_lines)
        else:
            gpus = min(gpus, STRIP_LINES + 1, max(2, room // LOWER_SHARE - 1))
            lower = gpus + min(next_lines, 2 if tasks > room // 2 else 5)
        lower = max(2, min(lower, room // LOWER_SHARE + 1))
        latest = self._latest_lines(room - tasks - lower)
        self.latest.show(latest)
        self.latest.display = bool(latest)
        # A message takes lines from the lower of the two.
        self.tasks.styles.height = tasks if latest else "1fr"
        lower = lower if latest else max(lower, room - tasks)
        places = (beside, lower, gpus, self._gpus_width())
        if places == self._places:
            return
        self._places = places
        self.below.set_class(beside, "-beside")
        self.below.styles.height = lower
        self.gpus_side.styles.height = "100%" if beside else gpus
        self.gpus_side.styles.width = self._gpus_width() + 3 if beside else "1fr"

    def _latest_lines(self, height: int) -> list[Line]:
        return latest_lines(
            self.feed.state,
            self.feed.facts,
            self.steered_instance,
            letters=not self._form.words or self.size.width < SIDE_BY_SIDE,
            width=self.size.width - 1,
            height=height,
        )

    def action_order(self) -> None:
        self._order = ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)]
        self.repaint(frozenset())

    def action_pane(self, number: int) -> None:
        pane: Widget = (self.tasks, self.gpus, self.next)[number - 1]
        pane.focus()
        self._draw_titles()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The GPUs can be gone to where there are some."""
        if action == "pane" and parameters == (2,):
            return self.gpus_side.display
        return super().check_action(action, parameters)

    def destination(self, name: str) -> Message | None:
        """Return the message to another screen; Agent opens as `enter` does."""
        if name == "agent" and self.tasks.cell_key is not None:
            return OpenInstance(self.tasks.cell_key)
        return super().destination(name)

    def action_back(self) -> None:
        self.post_message(LeaveSession())

    def jump(self, kind: str, direction: int) -> bool:
        """Move the cursor to the next or previous cell that waits (also past the end), holds a best, or has a failure.

        If the cell under the cursor is the only one that waits, Review opens with its attempt.
        """
        leaders = {task.leader.key for task in self._model.tasks if task.leader is not None}
        wanted: dict[str, Callable[[InstanceFacts], bool]] = {
            "waiting": lambda facts: bool(facts.waiting),
            "best": lambda facts: facts.key in leaders,
            "failure": lambda facts: facts.is_failure or facts.failed is not None,
        }
        keys = {facts.key for task in self._model.tasks for facts in task.instances if wanted[kind](facts)}
        before = self.tasks.cell_key
        if not self.tasks.jump(keys, direction, wraps=kind == "waiting"):
            return False
        self.tasks.focus()
        instance = self.steered_instance
        if kind == "waiting" and self.tasks.cell_key == before and self.steered_attempt is not None:
            self.post_message(OpenReview(self.steered_attempt.attempt))
        elif kind == "failure" and instance is not None:
            failed = self.feed.facts.of(self.feed.state, instance).failed
            if failed is not None:
                self.notify(f"{failed.attempt} failed, a later attempt did not", timeout=4)
        return True

    def show_jumped(self, attempt: str) -> None:
        self.tasks.select_cell(attempt.rpartition("/")[0])

    @on(LineTable.Moved, "#tasks")
    def renew_keys(self) -> None:
        """Other keys may work on another instance, and the lines below the table are about it."""
        self.refresh_bindings()
        self._place()
        self._draw_titles()

    @on(LineTable.Opened, "#tasks")
    def open_instance(self, message: LineTable.Opened) -> None:
        """Open the instance; in a row without one, say so."""
        if self.tasks.cell_key is None:
            self.notify("no instance of this task has started", timeout=4)
        else:
            self.post_message(OpenInstance(message.key))

    @on(LineTable.Opened, "#next")
    def go_to_concern(self, message: LineTable.Opened) -> None:
        """Go to what needs a person, or show it whole."""
        if self.next.cursor >= len(self.concerns):
            return
        concern = self.concerns[self.next.cursor]
        if concern.instance in self.feed.state.instances:
            self.post_message(OpenInstance(concern.instance, concern.attempt))
        else:
            self.notify(clean(concern.words), title=_about(concern), timeout=20, markup=False)


def _about(concern: Concern) -> str:
    """The subject in words: `GPU 5`, `softmax#3/7`, `session`."""
    if not concern.subject:
        return "session"
    return concern.subject if concern.instance else f"GPU {concern.subject}"

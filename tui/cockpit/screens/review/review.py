"""Review: a queue of attempts, the evidence for each, and a person's decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widget import Widget

from sessions.events import DecisionMade
from sessions.state.state import AttemptState, InstanceState
from tui.actions.line import Order
from tui.cockpit.data.archive import Archive
from tui.cockpit.data.attempts import is_of_kind
from tui.cockpit.data.feed import EVERYTHING
from tui.cockpit.data.sides import base_first
from tui.cockpit.desk.messages import OpenInstance
from tui.cockpit.draw.lines import plain
from tui.cockpit.screens.acting import STEERING, action_bindings
from tui.cockpit.screens.comparing import COMPARING, HUNKS, AttemptCode, ComparingScreen, set_title
from tui.cockpit.screens.review import review_queue
from tui.cockpit.screens.review.evidence import empty_lines, evidence, evidence_title
from tui.cockpit.screens.review.review_queue import QueueEntry, QueueKind, footer
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.line_view import LineView
from tui.cockpit.widgets.table import LineTable
from tui.facts.attempt import gain_words
from tui.facts.vocabulary import UNKNOWN

STATE_CELLS, GAIN_CELLS = 13, 10
"""Cells beside the name of the attempt: of its state, and of its own gain where an attempt has one."""


class ReviewScreen(ComparingScreen):
    """The queue of the open session. `attempt` is the first to show, else the oldest that waits."""

    NAME = "review"
    HELP = """\
Is this attempt safe to take? The queue has the attempts that wait, oldest
first, then the undecided best attempts of instances that ended, then
what was decided. `!` has findings.
`own gain` compares an attempt with the best before it in its own instance
(`apart`: other hardware or software timed that one); the line `before` has
the session's best of the task, over all instances.

WAITS: the instance waits for your decision, and does nothing until then.
After a decision the next attempt that waits opens by itself; about an ended
instance, else the next undecided one. `u` undoes the decision under the
cursor, else your latest one.
`enter` opens the attempt on the Agent screen.
"""
    PANES: ClassVar[tuple[tuple[str, str], ...]] = (
        ("queue", "queue"),
        ("evidence", "evidence"),
        ("code", "diff"),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        *action_bindings("decide", ("accept", "reject")),
        *HUNKS,
        *action_bindings("decide", ("undo",)),
        *COMPARING,
        *STEERING,
        Binding("z", "zoom", "zoom", id="review.zoom"),
    ]

    def __init__(
        self,
        attempt: str | None = None,
        *,
        registry: Path | None = None,
        read_archive: Callable[[], Archive | None] | None = None,
    ) -> None:
        """`registry` is the home's file of added suites; `read_archive` reads the home's other sessions, in a thread."""
        super().__init__()
        self._entries: list[QueueEntry] = []
        self._seen: object = None
        """State of the entries that the rows were drawn from; `None` before the first drawing."""
        self._wanted = attempt
        """The attempt to go to at the next draw."""
        self._awaited: tuple[str, DecisionMade | None, list[QueueEntry]] | None = None
        """The attempt with a decision on its way, its decision before, and the queue before."""
        self._decided: list[str] = []
        """Attempts that were decided here, the latest last."""
        self._read_archive = read_archive
        self._archive: Archive | None = None
        self._second = -1
        self.queue = LineTable(review_queue.queue_columns((), wide=True), id="queue")
        self.evidence = LineView(id="evidence")
        self.code = AttemptCode(registry=registry, first=base_first)
        self.decided = Bar(id="decided")

    @property
    def entry(self) -> QueueEntry | None:
        """The entry under the cursor; `None` in an empty queue."""
        key = self.queue.cursor_key
        return next((entry for entry in self._entries if entry.key == key), None)

    @property
    def steered_instance(self) -> InstanceState | None:
        """The instance of the entry under the cursor."""
        return self.entry.instance if self.entry is not None else None

    @property
    def steered_attempt(self) -> AttemptState | None:
        """The attempt of the entry under the cursor."""
        return self.entry.attempt if self.entry is not None else None

    def middle(self) -> Iterable[Widget]:
        """Queue, evidence, diff; below them what was decided."""
        with Container(id="review"):
            yield self.queue
            yield Vertical(self.evidence, self.code, id="case")
        yield self.decided

    def on_mount(self) -> None:
        super().on_mount()
        self.queue.focus()
        if self._read_archive is not None:
            self._take_archive(self._read_archive)

    def repaint(self, dirty: frozenset[str]) -> None:
        """Draw what changed, and once a second how long attempts wait."""
        super().repaint(dirty)
        if self.desk.feed is None or not self.is_mounted or self.feed.is_over or self._seen is None:
            return
        if int(self.desk.wall()) != self._second:
            self._draw_queue()
            if self.entry is not None and self.entry.kind is QueueKind.DECIDED:
                self._draw_evidence(self.entry)

    def draw(self, dirty: frozenset[str]) -> None:
        self._entries = review_queue.review_queue(self.feed.state, over=self.feed.is_over)
        seen = review_queue.seen(self._entries)
        if (
            not self.queue.size.width
        ):  # not laid out: lines for no width would be another picture for a moment
            set_title(self.queue, review_queue.queue_title(self._entries))
            return
        everything = EVERYTHING in dirty or seen != self._seen
        if everything:
            self._seen = seen
            self._follow()
            self._draw_queue()
        if everything or (self.entry is not None and self.entry.instance.key in dirty):
            self._draw_entry()

    def _follow(self) -> None:
        """Go on to the next entry when the decision that was sent from here is in the session."""
        if self._awaited is None:
            return
        key, before, queue = self._awaited
        decision = next((entry.attempt.decision for entry in self._entries if entry.key == key), None)
        if decision is None or decision == before:
            return
        self._awaited = None
        from tui.actions.send import login_name  # loads git, which a decision has loaded already

        if decision.by != login_name():
            return  # another person's: the engine refused ours, or theirs came later
        self._decided.append(key)
        following = review_queue.entry_to_follow(queue, key, self._entries)
        if key == self.queue.cursor_key and following is not None:
            self._wanted = following.key

    def _draw_queue(self) -> None:
        self._second = int(self.desk.wall())
        gains = any(gain_words(entry.attempt, entry.instance) != UNKNOWN for entry in self._entries)
        room = self.queue.size.width - STATE_CELLS - GAIN_CELLS * gains
        rows = review_queue.queue_rows(self._entries, self._second, room)
        narrow = self.has_class("-narrow") or self.has_class("-zoomed-queue")
        columns = review_queue.queue_columns(self._entries, wide=narrow)
        before = self.queue.cursor_key
        self.queue.set_rows(rows, columns)
        keys = [row.key for row in self.queue.rows]
        wanted, self._wanted = self._wanted, None
        if wanted in keys:
            self.queue.select(str(wanted))
        elif before not in keys and keys:
            self.queue.select(keys[0])
        set_title(self.queue, review_queue.queue_title(self._entries))

    def _draw_entry(self) -> None:
        if self._seen is None:
            return  # no row is drawn yet
        entry = self.entry
        self.refresh_bindings()
        state, over, width = self.feed.state, self.feed.is_over, self.size.width
        decidable = (entry, self._undoable()) if self._can_act else (None, None)
        self.decided.show(footer(state, self._entries, *decidable, over=over, width=width))
        if entry is not None:
            self._draw_evidence(entry)
            room = self.evidence.size.width - 4
            set_title(self.evidence, evidence_title(self.feed.state, entry.attempt, entry.instance, room))
            self.code.show_attempt(state, entry.instance, entry.attempt)
            return
        words = review_queue.empty_words(state, over=over)
        self.evidence.show(empty_lines(words, self._evidence_width))
        set_title(self.evidence, "Evidence")
        self.code.show_attempt(state, None, None)

    @property
    def _evidence_width(self) -> int:
        return max(self.evidence.scrollable_content_region.width, 20)

    def _draw_evidence(self, entry: QueueEntry) -> None:
        wall = None if self.feed.is_over else self.desk.wall()
        lines = evidence(
            self.feed.state,
            entry.attempt,
            entry.instance,
            wall=wall,
            width=self._evidence_width,
            archive=self._archive,
        )
        self.evidence.show(lines, copy_text="\n".join(map(plain, lines)))

    @work(thread=True, group="archive", exit_on_error=False, name="reading the other sessions")
    def _take_archive(self, read: Callable[[], Archive | None]) -> None:
        self._archive = read()
        self.app.call_from_thread(self._show_baseline)

    @on(LineTable.Moved)
    def _show_other_entry(self) -> None:
        self._draw_entry()

    @on(LineTable.Opened)
    def _open(self, message: LineTable.Opened) -> None:
        entry = self.entry
        if entry is not None:
            self.post_message(OpenInstance(entry.instance.key, entry.attempt.number))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Decisions only where they can be made; elsewhere their keys say why not."""
        if self.desk.feed is None:
            return False
        if action == "undo":
            return self._can_act and self._undoable() is not None
        return super().check_action(action, parameters)

    def _undoable(self) -> str | None:
        """The decided attempt under the cursor, else the latest that was decided here."""
        decided = {entry.key for entry in self._entries if entry.attempt.decision is not None}
        latest = [self.queue.cursor_key, *reversed(self._decided)]
        return next((key for key in latest if key in decided), None)

    def deciding(self, attempt: AttemptState) -> None:
        """Go on to the next entry as soon as the decision is in the session."""
        self._awaited = attempt.attempt, attempt.decision, self._entries

    def action_undo(self) -> None:
        key = self._undoable()
        if key is None:
            return
        self.queue.select(key)
        self.desk.commander.carry_out(Order("undo", attempt=key))

    def action_walk(self, steps: int) -> None:
        self.queue.action_cursor(steps)

    def action_pane(self, number: int) -> None:
        pane = (self.queue, self.evidence, self.code)[number - 1]
        if self._zoomed and self._zoomed != pane.id:
            self._zoom(str(pane.id))
        pane.focus()

    @property
    def _zoomed(self) -> str:
        """Name of the pane that has the whole screen; empty if none has."""
        return next((name for name, _ in self.PANES if self.has_class(f"-zoomed-{name}")), "")

    def redraw(self) -> None:
        """Draw the entry under the cursor: the person chose another side, or its baseline is read."""
        self._draw_entry()

    def action_zoom(self) -> None:
        focused = self.focused.id if self.focused is not None else None
        self._zoom("" if self._zoomed else focused or "evidence")

    def _zoom(self, name: str) -> None:
        for pane, _ in self.PANES:
            self.set_class(pane == name, f"-zoomed-{pane}")
        self.call_after_refresh(self.repaint, frozenset((EVERYTHING,)))

    def action_back(self) -> None:
        """Leave the zoom, else the screen."""
        if self._zoomed:
            self._zoom("")
        else:
            super().action_back()

    def show_jumped(self, attempt: str) -> None:
        if any(entry.key == attempt for entry in self._entries):
            self.queue.select(attempt)
        else:
            self.post_message(self.message_to(attempt))

    def jump(self, kind: str, direction: int) -> bool:
        following = review_queue.next_entry(
            self._entries,
            self.queue.cursor_key,
            lambda entry: is_of_kind(entry.instance, entry.attempt, kind),
            direction,
            wraps=kind == "waiting",
        )
        if following is not None:
            self.queue.select(following.key)
        return following is not None

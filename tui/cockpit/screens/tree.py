"""The tree: task, instance, attempt, call, with what each of them cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget

from sessions.names import split_attempt
from sessions.state import AttemptState, InstanceState
from tui.cockpit import tree_view
from tui.cockpit.feed import EVERYTHING
from tui.cockpit.messages import OpenInstance
from tui.cockpit.screens.acting import STEERING, ActingScreen
from tui.cockpit.widgets.table import LineTable

MOST_TASKS = 12
"""Up to so many tasks are unfolded at the start."""


class TreeTable(LineTable):
    """Rows that fold."""

    HELP = """\
Tasks, in them instances, in them attempts, in them calls of the model. `l` or
`enter` unfolds, `h` folds, `enter` on an attempt opens it.
Tokens, cost and time on GPUs are summed from the calls and attempts upward;
`-` is not known.
verdicts of an instance: one letter an attempt, oldest first
C correct   W wrong    E compile error  X call error   R rejected by judge
T timeout   K crash    N no code        U unsupported  I our failure  . running
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l,right", "unfold", "unfold", id="tree.unfold", key_display="l"),
        Binding("h,left", "fold", "fold", id="tree.fold", key_display="h"),
    ]

    class Folded(Message):
        """A row shall be unfolded or folded."""

        def __init__(self, *, unfold: bool) -> None:
            super().__init__()
            self.unfold = unfold

    def action_unfold(self) -> None:
        """Show what is inside the row."""
        self.post_message(self.Folded(unfold=True))

    def action_fold(self) -> None:
        """Hide what is inside the row, or go to the row that it is in."""
        self.post_message(self.Folded(unfold=False))


class TreeScreen(ActingScreen):
    """Opens over Fleet; `key` is the instance under the cursor there."""

    CSS = "#tree { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [*STEERING]

    def __init__(self, key: str | None = None) -> None:
        super().__init__()
        self._first = key
        self._unfolded: set[str] = set()
        self.table = TreeTable(tree_view.columns(80), empty="No instance has started yet.", id="tree")

    def middle(self) -> Iterable[Widget]:
        """The tree alone."""
        yield self.table

    def on_mount(self) -> None:
        """Unfold the tasks, unless there are many, and the instance from which the person comes."""
        state = self.feed.state
        tasks = dict.fromkeys(tree_view.TASK + instance.task for instance in state.instances.values())
        if len(tasks) <= MOST_TASKS:
            self._unfolded |= tasks.keys()
        instance = state.instances.get(self._first or "")
        if instance is not None:
            self._unfolded |= {instance.key, tree_view.TASK + instance.task}
        super().on_mount()
        self.table.focus()
        if instance is not None:
            self.table.select(instance.key)

    @property
    def steered_instance(self) -> InstanceState | None:
        """The instance of the row under the cursor."""
        key = self.table.cursor_key
        return tree_view.instance_of(key, self.feed.state) if key is not None else None

    @property
    def steered_attempt(self) -> AttemptState | None:
        """The attempt of the row under the cursor, else the best of its instance."""
        instance, key = self.steered_instance, self.table.cursor_key
        if instance is None or key is None:
            return None
        name = tree_view.attempt_of(key) or instance.best
        return next((attempt for attempt in instance.attempts if attempt.attempt == name), None)

    def draw(self, dirty: frozenset[str]) -> None:
        """Draw the rows that are unfolded."""
        if dirty:
            width = self.size.width
            rows = tree_view.tree_rows(
                self.feed.state,
                self.feed.facts,
                self._unfolded,
                wide=width >= tree_view.WIDE,
            )
            self.table.set_rows(rows, tree_view.columns(width))

    @on(TreeTable.Folded)
    def fold_row(self, message: TreeTable.Folded) -> None:
        """Unfold the row or step into it; fold it or step out of it."""
        key, state = self.table.cursor_key, self.feed.state
        if key is None:
            return
        if message.unfold:
            if key in self._unfolded:
                self.table.action_cursor(1)
            elif tree_view.can_unfold(key, state):
                self._unfolded.add(key)
        elif key in self._unfolded:
            self._unfolded.discard(key)
        elif (parent := tree_view.parent_of(key, state)) is not None:
            self.table.select(parent)
        self.draw(frozenset((EVERYTHING,)))

    @on(LineTable.Moved, "#tree")
    def renew_keys(self) -> None:
        """Other keys may work on another row."""
        self.refresh_bindings()

    @on(LineTable.Opened, "#tree")
    def open_row(self, message: LineTable.Opened) -> None:
        """Open an attempt; unfold or fold a task or an instance."""
        attempt = tree_view.attempt_of(message.key)
        if attempt is not None:
            name = split_attempt(attempt)
            self.post_message(OpenInstance(name.instance, name.number))
        else:
            self._unfolded ^= {message.key} if tree_view.can_unfold(message.key, self.feed.state) else set()
            self.draw(frozenset((EVERYTHING,)))

    def jump(self, kind: str, direction: int) -> bool:
        """Move the cursor to the next or previous instance that waits, holds the best of its task, or failed."""
        rows = [row.key for row in self.table.rows]
        step = rows[self.table.cursor + 1 :] if direction > 0 else rows[: self.table.cursor][::-1]
        key = next((key for key in step if self._is_kind(kind, key)), None)
        if key is not None:
            self.table.select(key)
        return key is not None

    def _is_kind(self, kind: str, key: str) -> bool:
        state = self.feed.state
        instance = state.instances.get(key)
        if instance is None:
            return False
        facts = self.feed.facts.of(state, instance)
        match kind:
            case "waiting":
                return bool(facts.waiting)
            case "best":
                ranks = [
                    other.rank
                    for other in self.feed.facts.all(state)
                    if other.task == facts.task and other.rank
                ]
                return facts.rank is not None and facts.rank == max(ranks)
            case _:
                return facts.is_failure

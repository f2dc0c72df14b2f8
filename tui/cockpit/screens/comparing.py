"""A screen with a code pane: code or diff of an attempt, its hunks, and the lines that its error names."""

from __future__ import annotations

from pathlib import Path

from textual import work
from textual.binding import Binding, BindingType

from sessions.settings import RunSettings
from sessions.state.state import AttemptState, InstanceState
from tui.cockpit.data import attempts
from tui.cockpit.data.feed import EVERYTHING
from tui.cockpit.data.sides import (
    ComparedTo,
    Side,
    TaskFiles,
    following,
    neighbour,
    other_sides,
    read_task_files,
    side_of,
)
from tui.cockpit.data.steps import written_code
from tui.cockpit.screens.deciding import DecidingScreen
from tui.cockpit.widgets.code import CodePane
from tui.facts.evaluation.verdict import error_lines

COMPARING: list[BindingType] = [
    Binding("left_square_bracket", "walk(-1)", "attempt", id="agent.previous", key_display="[]"),
    Binding("right_square_bracket", "walk(1)", "next attempt", id="agent.next", show=False),
    Binding("e", "error", "error", id="agent.error"),
    Binding("d", "diff", "diff", id="agent.diff"),
    Binding("left_curly_bracket", "hunk(-1)", "hunk", id="agent.hunk_previous", key_display="{}"),
    Binding("right_curly_bracket", "hunk(1)", "next hunk", id="agent.hunk_next", show=False),
    Binding("less_than_sign", "other(-1)", "other side", id="agent.other_previous", key_display="<>"),
    Binding("greater_than_sign", "other(1)", "next other side", id="agent.other_next", show=False),
    Binding("D", "columns", "side by side", id="agent.columns", show=False),
]


class ComparingScreen(DecidingScreen):
    """Shows the code of `steered_attempt`, or its difference to another source."""

    def __init__(self, *, registry: Path | None = None) -> None:
        super().__init__()
        self._registry = registry
        self.comparison = ComparedTo.CODE
        self.compared_with: int | None = None
        """Number of the attempt that a person chose as the other side."""
        self.code = CodePane(id="code")
        self.facts = TaskFiles()
        self._facts_asked = False
        self._error = -1
        """Index of the error line that `e` went to last; -1 before the first."""
        self._error_of = ""
        """The attempt of `_error`."""

    def bring_up_code(self) -> None:
        """Put the code pane on screen; the subclass says how."""

    @property
    def shows_code(self) -> bool:
        """True if the code pane is on screen."""
        return True

    @property
    def chosen_error(self) -> int | None:
        """The line of the candidate that `e` went to last."""
        attempt = self.steered_attempt
        if attempt is None or attempt.attempt != self._error_of:
            return None
        lines = error_lines(attempt)
        return lines[self._error] if 0 <= self._error < len(lines) else None

    def redraw(self) -> None:
        """Draw everything: the person chose something else."""
        self.draw(frozenset((EVERYTHING,)))

    def ask_for_facts(self, instance: InstanceState | None) -> None:
        """Read the task's baseline and shapes once, in a thread."""
        started = self.feed.state.started
        if instance is not None and started is not None and not self._facts_asked:
            self._facts_asked = True
            self._read_facts(started, instance.task)

    @work(thread=True, exit_on_error=False, name="reading the task")
    def _read_facts(self, started: RunSettings, task: str) -> None:
        facts = read_task_files(started, task, self._registry)
        self.app.call_from_thread(self._take_facts, facts)

    def _take_facts(self, facts: TaskFiles) -> None:
        self.facts = facts
        if self.is_mounted and self.desk.feed is not None:
            self.redraw()

    def draw_code(self, instance: InstanceState | None, attempt: AttemptState | None) -> None:
        """Draw the code pane."""
        code = self.code
        if instance is None or attempt is None:
            code.show_code(None, missing="")
            return
        errors = error_lines(attempt)
        against, side = self._other_side(), side_of(attempt)
        if against is not None and side is not None:
            code.show_diff(against, side, errors=errors, chosen=self.chosen_error)
            return
        source = written_code(attempt)
        name = attempts.short_name(attempt.attempt)
        code.show_code(
            Side(name, source, attempt.commit) if source else None,
            missing=self._missing_words(attempt, name),
            errors=errors,
            chosen=self.chosen_error,
            growing=attempt.source is None,
        )

    def _missing_words(self, attempt: AttemptState, name: str) -> str:
        words = f"{name} has no code" if attempt.evaluation is not None else f"{name} has no code yet"
        base = attempts.base_of(self.feed.state, attempt)
        if base is None or not base.source:
            return words
        return f"{words}; [ ] lead to {attempts.short_name(base.attempt)}, from which it is made"

    def _sides(self) -> dict[ComparedTo, Side]:
        instance, attempt = self.steered_instance, self.steered_attempt
        if instance is None or attempt is None or not attempt.source:
            return {}
        return other_sides(self.feed.state, instance, attempt, self.facts.baseline, self.compared_with)

    def _other_side(self) -> Side | None:
        return self._sides().get(self.comparison)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of diffs only where a diff is on screen; `e` only where the error names a line."""
        if self.desk.feed is None:
            return False
        attempt = self.steered_attempt
        if action == "diff":
            return bool(self._sides())
        if action == "other":
            return len(self.steered_instance.attempts) > 1 if self.steered_instance is not None else False
        if action == "columns":
            return self.shows_code and self._other_side() is not None
        if action == "hunk":
            return self.shows_code and self.code.has_hunks
        if action == "error":
            return attempt is not None and bool(error_lines(attempt))
        return super().check_action(action, parameters)

    def action_diff(self) -> None:
        """Go on from the code to the diffs, and back to the code."""
        if self.shows_code:
            sides = self._sides()
            current = self.comparison if self.comparison in sides else ComparedTo.CODE
            self.comparison = following(current, sides)
        self.bring_up_code()
        self.redraw()

    def action_other(self, direction: int) -> None:
        """Compare with another attempt of the instance."""
        instance, attempt = self.steered_instance, self.steered_attempt
        if instance is None or attempt is None:
            return
        against = self._other_side()
        number = neighbour(instance, attempt, against.name if against is not None else "", direction)
        if number is None:
            self.notify(f"no attempt {'before' if direction < 0 else 'after'} this", timeout=2)
            return
        self.compared_with, self.comparison = number, ComparedTo.OTHER
        self.bring_up_code()
        self.redraw()

    def action_hunk(self, steps: int) -> None:
        """Go to the hunk before, or to the next one."""
        self.code.go_to_hunk(steps)
        self.redraw()

    def action_columns(self) -> None:
        """Show the diff in one column or two."""
        self.code.toggle_columns()

    def action_error(self) -> None:
        """Go to the next line of the candidate that the error names."""
        attempt = self.steered_attempt
        lines = error_lines(attempt) if attempt is not None else []
        if attempt is None or not lines:
            return
        if attempt.attempt != self._error_of:
            self._error_of, self._error = attempt.attempt, -1
        if len(lines) == 1 and self._error == 0:
            self.notify(f"line {lines[0]} is the only line that the error names", timeout=2)
        self._error = (self._error + 1) % len(lines)
        self.bring_up_code()
        self.redraw()
        self.call_after_refresh(self.code.go_to_error)

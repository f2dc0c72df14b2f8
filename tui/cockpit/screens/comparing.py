"""The code pane that Agent and Review share: code or diff of an attempt, and the lines that its error names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from textual import on, work
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget

from sessions.settings import RunSettings
from sessions.state.state import AttemptState, InstanceState, SessionState
from tui.cockpit.data import attempts
from tui.cockpit.data.feed import EVERYTHING
from tui.cockpit.data.sides import (
    ComparedTo,
    Side,
    following,
    neighbour,
    other_sides,
    read_baseline,
    side_of,
)
from tui.cockpit.data.steps import written_code
from tui.cockpit.screens.acting import ActingScreen
from tui.cockpit.widgets.code import CodePane
from tui.facts.evaluation.verdict import error_lines

COMPARING: list[BindingType] = [
    Binding("left_square_bracket", "walk(-1)", "attempt", id="code.previous", key_display="[]"),
    Binding("right_square_bracket", "walk(1)", "next attempt", id="code.next", show=False),
    Binding("e", "code('error')", "error", id="code.error"),
    Binding("d", "code('diff')", "diff", id="code.diff"),
    Binding("less_than_sign", "code('other', -1)", "other side", id="code.other_previous", key_display="<>"),
    Binding("greater_than_sign", "code('other', 1)", "next other side", id="code.other_next", show=False),
    Binding("D", "code('toggle_columns')", "side by side", id="code.columns", show=False),
]
HUNKS: list[BindingType] = [
    Binding(
        "left_curly_bracket", "code('go_to_hunk', -1)", "hunk", id="code.hunk_previous", key_display="{}"
    ),
    Binding("right_curly_bracket", "code('go_to_hunk', 1)", "next hunk", id="code.hunk_next", show=False),
]
"""Keys of a `ComparingScreen` that go through a diff; it names them and `COMPARING` among its own."""


class AttemptCode(CodePane):
    """The code of an attempt, or its difference to another source. It keeps what a person chose to compare with."""

    @dataclass
    class BaselineRead(Message):
        """The baseline of a task is read."""

    def __init__(
        self, *, registry: Path | None, first: Callable[[dict[ComparedTo, Side]], ComparedTo] | None = None
    ) -> None:
        """`registry` is the home's file of added suites.

        `first` chooses from the other sides what is shown before a person chooses; without it the code is shown.
        """
        super().__init__(id="code")
        self._registry = registry
        self._first = first
        self._baselines: dict[str, Side | None] = {}
        """Baselines by task, once they are read."""
        self._asked: set[str] = set()
        """Tasks of which a thread reads the baseline, or has read it."""
        self._state = SessionState()
        self._instance: InstanceState | None = None
        self._attempt: AttemptState | None = None
        self._comparison: ComparedTo | None = None
        """The comparison that a person chose; `None` before the first choice."""
        self._other_number: int | None = None
        """Number of the attempt that a person chose as the other side."""
        self._error = -1
        """Index of the error line that `e` went to last; -1 before the first."""
        self._error_of = ""
        """The attempt of `_error`."""

    @property
    def baseline(self) -> Side | None:
        """The timing baseline of the task, if it is read and has a source."""
        return self._baselines.get(self._instance.task) if self._instance is not None else None

    @property
    def chosen_error(self) -> int | None:
        """The line of the candidate that `e` went to last."""
        lines = self._error_lines
        if self._attempt is None or self._attempt.attempt != self._error_of:
            return None
        return lines[self._error] if 0 <= self._error < len(lines) else None

    @property
    def _error_lines(self) -> list[int]:
        return error_lines(self._attempt) if self._attempt is not None else []

    def show_attempt(
        self, state: SessionState, instance: InstanceState | None, attempt: AttemptState | None
    ) -> None:
        """Show the code of an attempt, or its difference to the other side."""
        if instance is None or self._instance is None or instance.key != self._instance.key:
            self._other_number = None
        self._state, self._instance, self._attempt = state, instance, attempt
        if instance is None or attempt is None:
            self.show_side(None)
            return
        if instance.task not in self._asked and state.started is not None:
            self._asked.add(instance.task)
            self._read(state.started, instance.task)
        if self._first is not None and self._comparison is None and instance.task not in self._baselines:
            self.show_side(None, missing="reading the baseline ...")
            return
        source, against = written_code(attempt), self._against
        name = attempts.short_name(attempt.attempt)
        begins_with = self._begins_with(attempt) if not source and attempt.evaluation is None else None
        if begins_with is not None:
            self.show_side(replace(begins_with, name=f"{begins_with.name}, {name} has no code yet"))
            return
        self.show_side(
            Side(name, source, attempt.commit, attempt.attempt) if source else None,
            against,
            missing=f"{name} has no code" if attempt.evaluation is not None else f"{name} has no code yet",
            errors=error_lines(attempt),
            chosen=self.chosen_error,
            growing=attempt.source is None,
        )

    def _begins_with(self, attempt: AttemptState) -> Side | None:
        """The code that the model has before it while it reasons: that of the base, else the baseline."""
        base = attempts.base_of(self._state, attempt)
        return side_of(base, "base") if base is not None and base.source else self.baseline

    @work(thread=True, exit_on_error=False, name="reading the task")
    def _read(self, started: RunSettings, task: str) -> None:
        self._baselines[task] = read_baseline(started, task, self._registry)
        self.post_message(self.BaselineRead())

    @property
    def _sides(self) -> dict[ComparedTo, Side]:
        instance, attempt = self._instance, self._attempt
        if instance is None or attempt is None or not attempt.source:
            return {}
        return other_sides(self._state, instance, attempt, self.baseline, self._other_number)

    @property
    def _against(self) -> Side | None:
        sides = self._sides
        return sides.get(self._shown(sides))

    def _shown(self, sides: dict[ComparedTo, Side]) -> ComparedTo:
        if self._comparison is not None and self._comparison in (ComparedTo.CODE, *sides):
            return self._comparison
        return ComparedTo.CODE if self._first is None else self._first(sides)

    def can(self, name: str) -> bool:
        """Keys of diffs only where a diff is on screen; `error` only where the error names a line."""
        match name:
            case "diff":
                return bool(self._sides)
            case "other":
                return self._instance is not None and len(self._instance.attempts) > 1
            case "toggle_columns":
                return self.display and self._against is not None
            case "go_to_hunk":
                return self.display and self.has_hunks
            case _:
                return bool(self._error_lines)

    def diff(self) -> None:
        """Go on from the code to the diffs, and back to the code."""
        sides = self._sides
        self._comparison = following(self._shown(sides), sides)

    def other(self, direction: int) -> None:
        """Compare with another attempt of the instance."""
        instance, attempt = self._instance, self._attempt
        if instance is None or attempt is None:
            return
        against = self._against
        number = neighbour(instance, attempt, against.attempt if against is not None else "", direction)
        if number is None:
            self.notify(f"no attempt {'before' if direction < 0 else 'after'} this", timeout=2)
        else:
            self._other_number, self._comparison = number, ComparedTo.OTHER

    def error(self) -> None:
        """Go to the next line of the candidate that the error names."""
        lines = self._error_lines
        if self._attempt is None or not lines:
            return
        if self._attempt.attempt != self._error_of:
            self._error_of, self._error = self._attempt.attempt, -1
        if len(lines) == 1 and self._error == 0:
            self.notify(f"line {lines[0]} is the only line that the error names", timeout=2)
        self._error = (self._error + 1) % len(lines)
        self.call_after_refresh(self.go_to_error)


class ComparingScreen(ActingScreen):
    """A screen with a code pane. The keys of the code pane work from every pane."""

    code: AttemptCode

    def bring_up_code(self) -> None:
        """Put the code pane on screen; the subclass says how."""

    def redraw(self) -> None:
        """Draw everything: the person chose something else."""
        self.draw(frozenset((EVERYTHING,)))

    @on(AttemptCode.BaselineRead)
    def _show_baseline(self) -> None:
        if self.is_mounted and self.desk.feed is not None:
            self.redraw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the code pane only where they do something."""
        if self.desk.feed is None:
            return False
        if action == "code":
            return self.code.can(str(parameters[0]))
        return super().check_action(action, parameters)

    def action_code(self, name: str, *arguments: int) -> None:
        """Do what a key of the code pane says; `d` on another pane only brings the code pane up."""
        if name != "diff" or self.code.display:
            getattr(self.code, name)(*arguments)
        self.bring_up_code()
        self.redraw()


def set_title(pane: Widget, markup: str) -> None:
    """Draw the title of a pane if it changed."""
    if pane.border_title != markup:
        pane.border_title = markup

"""What the screens of a session share where a person steers: keys for one instance and one attempt."""

from __future__ import annotations

from pathlib import Path

from textual.binding import Binding, BindingType
from textual.message import Message

from harness import Verdict
from sessions.state.state import AttemptState, InstanceState
from tui.cockpit import views
from tui.cockpit.messages import OpenLatency
from tui.cockpit.screens.base import SessionScreen
from tui.cockpit.verbs import Subject
from tui.cockpit.writing import write_attempt
from tui.diagnostics import Complaint
from tui.reproducers import reproducer

STEERING: list[BindingType] = [
    Binding("i", "hint", "hint", id="steer.hint"),
    Binding("t", "measure", "time again", id="steer.measure"),
    Binding("E", "edit", "edit", id="steer.edit"),
    Binding("Y", "reproduce", "copy reproducer", id="attempt.reproduce", show=False),
    Binding("O", "write", "write files", id="attempt.write", show=False),
]
"""Keys of an `ActingScreen`, which it names after its own."""


class ActingScreen(SessionScreen):
    """A subclass says which instance and which attempt its keys are about."""

    @property
    def steered_instance(self) -> InstanceState | None:
        """The instance that the keys are about."""
        return None

    @property
    def steered_attempt(self) -> AttemptState | None:
        """The attempt that the keys are about."""
        return None

    @property
    def steered_case(self) -> str:
        """The case under the cursor; empty on a screen without cases."""
        return ""

    def destination(self, name: str) -> Message | None:
        """Return the message to a screen; Latency is about the attempt of the keys."""
        if name == "latency":
            attempt = self.steered_attempt
            return OpenLatency(attempt.attempt) if attempt is not None else None
        return super().destination(name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Steering only where a command can be given; the engine says what else is impossible."""
        if self.desk.feed is None:
            return False
        if action == "pause" and self.feed.replay is not None:
            return True
        if action in ("pause", "hint"):
            instance = self.steered_instance if self._can_act else None
            return instance is not None and not self.feed.state.finished and not instance.finished
        if action == "measure":
            attempt = self.steered_attempt if self._can_act else None
            return (
                attempt is not None
                and attempt.verdict is Verdict.CORRECT
                and bool(views.gpus(self.feed.state))
            )
        if action == "edit":
            attempt = self.steered_attempt if self._can_act else None
            return attempt is not None and bool(attempt.source)
        if action in ("reproduce", "write"):
            return self.steered_attempt is not None and bool(self.steered_attempt.source)
        return super().check_action(action, parameters)

    @property
    def _can_act(self) -> bool:
        return self.desk.feed is not None and self.desk.commander.can_act

    @property
    def subject(self) -> Subject:
        """What the keys and a `:` line without names are about."""
        instance, attempt = self.steered_instance, self.steered_attempt
        instances = (instance.key,) if instance is not None else ()
        return Subject(instances, attempt.attempt if attempt is not None else None)

    def action_pause(self) -> None:
        """Pause the instances, or let them go on; in a replay play it, or pause it."""
        if self.feed.replay is not None:
            super().action_pause()
        elif self.subject.instances:
            self.desk.commander.toggle_pause(self.subject.instances)

    def action_hint(self) -> None:
        """Give the instances a hint."""
        if self.subject.instances:
            self.desk.commander.ask_hint(self.subject.instances)

    def action_measure(self) -> None:
        """Time the attempt again on all GPUs."""
        if self.subject.attempt is not None:
            self.desk.commander.measure(self.subject.attempt)

    def action_edit(self) -> None:
        """Edit the attempt's kernel in the person's editor, and have it judged."""
        if self.subject.attempt is not None:
            self.desk.commander.edit(self.subject.attempt)

    def action_reproduce(self) -> None:
        """Copy one shell line that judges the attempt alone, and only the case under the cursor if there is one."""
        attempt = self.subject.attempt
        if attempt is None:
            return
        try:
            line = reproducer(self.desk.home.store, self.feed.state, attempt, self.steered_case)
        except Complaint as error:
            self.desk.refuse("no reproducer", str(error))
        else:
            self.app.copy_to_clipboard(line)

    def action_write(self) -> None:
        """Write the attempt's kernel and evaluation to files in the current folder."""
        attempt = self.steered_attempt
        if attempt is None:
            return
        try:
            files = write_attempt(attempt, Path.cwd())
        except OSError as error:
            self.desk.refuse("not written", f"{Path.cwd()}: {error.strerror or error}")
        else:
            self.notify(f"written: {', '.join(file.name for file in files)}", markup=False)

"""What the screens of a session share where a person steers: keys for one instance and one attempt."""

from __future__ import annotations

import os

from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.message import Message

from harness import Verdict
from sessions.state import AttemptState, InstanceState
from tui.cockpit import views
from tui.cockpit.editing import NotEdited, edited
from tui.cockpit.messages import OpenLatency
from tui.cockpit.screens.base import SessionScreen

STEERING: list[BindingType] = [
    Binding("i", "hint", "hint", id="steer.hint"),
    Binding("p", "pause", "pause/go", id="steer.pause"),
    Binding("t", "measure", "time again", id="steer.measure"),
    Binding("E", "edit", "edit", id="steer.edit"),
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
        return super().check_action(action, parameters)

    @property
    def _can_act(self) -> bool:
        return self.desk.feed is not None and self.desk.commander.can_act

    def action_pause(self) -> None:
        """Pause the instance, or let it go on."""
        if self.steered_instance is not None:
            self.desk.commander.toggle_pause(self.steered_instance.key)

    def action_hint(self) -> None:
        """Give the instance a hint."""
        if self.steered_instance is not None:
            self.desk.commander.ask_hint(self.steered_instance.key)

    def action_measure(self) -> None:
        """Time the attempt again on all GPUs."""
        if self.steered_attempt is not None:
            self.desk.commander.measure(self.steered_attempt.attempt)

    def action_edit(self) -> None:
        """Edit the attempt's kernel in the person's editor, and have it judged."""
        attempt = self.steered_attempt
        if attempt is None or not attempt.source:
            return
        try:
            with self.app.suspend():
                source = edited(attempt.source, os.environ)
        except SuspendNotSupported:
            self.notify(
                "no editor can be opened from here; use: wavedeck edit", severity="error", markup=False
            )
        except NotEdited as error:
            self.notify(str(error), severity="error", timeout=15, markup=False)
        else:
            if source == attempt.source:
                self.notify("nothing was changed, so nothing is judged")
                return
            done = f"the edit of {attempt.attempt} is judged in an instance of its own"
            self.desk.commander.give("edit", done, attempt=attempt.attempt, source=source)

"""Keys about one instance and one attempt: a person steers the instance and decides about the attempt."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from textual.binding import Binding, BindingType
from textual.message import Message

from harness import Verdict
from sessions.kept_kernels import kept_kernel
from sessions.names import short_task
from sessions.state.state import AttemptState, InstanceState
from suites import SuiteError, load_task
from tui.actions.catalogue import ACTIONS
from tui.actions.line import INSTANCES, LineSubject, Order
from tui.actions.reproducers import reproducer
from tui.cockpit.desk.messages import OpenInstance, OpenLatency
from tui.cockpit.desk.writing import write_export
from tui.cockpit.screens.base import PLAYING, SessionScreen
from tui.diagnostics import Complaint

STEERED = ("hint", "measure", "edit", "profile")
DECISIONS = ("accept", "reject", "undo")
HIDDEN = ("profile",)
"""Actions that the key bar does not name."""


def action_bindings(prefix: str, names: Iterable[str]) -> list[BindingType]:
    """Return the keys of actions, with the names and keys of the catalogue. Where one does nothing, its key says why."""
    return [
        Binding(ACTIONS[name].key, action, name, id=own, show=bool(own) and name not in HIDDEN)
        for name in names
        for action, own in ((name, f"{prefix}.{name}"), (f"refuse('{name}')", None))
    ]


STEERING: list[BindingType] = [
    Binding("p", "pause", "pause", id="screen.pause"),
    Binding("p", "unpause", "unpause", id="screen.pause"),
    *PLAYING,
    *action_bindings("steer", STEERED),
    Binding("p", "refuse('pause')", show=False),
    Binding("Y", "reproduce", "copy reproducer", id="attempt.reproduce", show=False),
    Binding("O", "write", "export", id="attempt.write", show=False),
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

    def deciding(self, attempt: AttemptState) -> None:
        """Called before a decision about an attempt is sent; the instance goes on after it."""

    @property
    def steered_case(self) -> str:
        """The case under the cursor; empty on a screen without cases."""
        return ""

    def destination(self, name: str) -> Message | None:
        """Return the message to a screen; Agent and Latency are about the instance and the attempt of the keys."""
        instance, attempt = self.steered_instance, self.steered_attempt
        if name == "agent" and name != self.NAME and instance is not None:
            return OpenInstance(instance.key, attempt.number if attempt is not None else None)
        if name == "latency" and name != self.NAME and attempt is not None:
            return OpenLatency(attempt.attempt)
        return super().destination(name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Steering only where a command can be given; the engine says what else is impossible."""
        if self.desk.feed is None:
            return False
        if action in ("pause", "unpause"):
            is_live = self.feed.replay is None
            return is_live and self.is_possible("pause") and self.is_held == (action == "unpause")
        if action in (*STEERED, *DECISIONS):
            return self.is_possible(action)
        if action == "refuse":
            name = str(parameters[0])
            if name == "pause" and self.feed.replay is not None:
                return False  # the key plays the replay
            names = ("pause", "unpause") if name == "pause" else (name,)
            return not any(self.check_action(name, ()) for name in names)
        if action in ("reproduce", "write"):
            return self.steered_attempt is not None and bool(self.steered_attempt.source)
        return super().check_action(action, parameters)

    def is_possible(self, name: str) -> bool:
        """True if the action can be given about the instance and the attempt of the keys."""
        return not self.why_not(name)

    def why_not(self, name: str) -> str:
        """Return why the action cannot be given about the instance and the attempt of the keys; empty if it can."""
        instance, attempt = self.steered_instance, self.steered_attempt
        if name == "pause" and instance is not None and self.feed.state.is_on_hold(instance.key):
            name = "unpause"
        if ACTIONS[name].takes in INSTANCES:
            order = Order(name, (instance.key,)) if instance is not None else None
        else:
            order = Order(name, attempt=attempt.attempt) if attempt is not None else None
        return self.desk.commander.why_not(order)

    def action_refuse(self, name: str) -> None:
        self.desk.refuse(f"{name}: not possible", self.why_not(name))

    @property
    def _can_act(self) -> bool:
        return self.desk.feed is not None and self.desk.commander.can_act

    @property
    def subject(self) -> LineSubject:
        """What the keys and a `:` line without names are about."""
        instance, attempt = self.steered_instance, self.steered_attempt
        instances = (instance.key,) if instance is not None else ()
        return LineSubject(instances, attempt.attempt if attempt is not None else None)

    @property
    def is_held(self) -> bool:
        """True if all instances that the keys are about are paused; in a replay, if that is paused."""
        if self.feed.replay is not None:
            return super().is_held
        keys = self.subject.instances
        return bool(keys) and all(self.feed.state.is_on_hold(key) for key in keys)

    def action_pause(self) -> None:
        """Pause the instances, or end their pause if they are all paused."""
        if self.subject.instances:
            self.desk.commander.toggle_pause(self.subject.instances)

    def action_unpause(self) -> None:
        self.action_pause()

    def action_hint(self) -> None:
        if self.subject.instances:
            self.desk.action_command_line("hint ")

    def action_accept(self) -> None:
        self._decide(accepted=True)

    def action_reject(self) -> None:
        self._decide(accepted=False)

    def _decide(self, *, accepted: bool) -> None:
        attempt = self.steered_attempt
        if attempt is not None:
            self.desk.commander.ask_and_decide(
                attempt, accepted=accepted, decided=lambda: self.deciding(attempt)
            )

    def action_undo(self) -> None:
        attempt = self.steered_attempt
        if attempt is not None:
            self.deciding(attempt)
            self._give("undo")

    def action_measure(self) -> None:
        self._give("measure")

    def action_profile(self) -> None:
        self._give("profile", case=self.steered_case)

    def action_edit(self) -> None:
        self._give("edit")

    def _give(self, name: str, **fields: object) -> None:
        if self.subject.attempt is not None:
            self.desk.commander.carry_out(Order(name, attempt=self.subject.attempt), **fields)

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
        attempt = self.steered_attempt
        if attempt is None or not attempt.source:
            return
        kernel = kept_kernel(self.feed.session, self.feed.state, attempt)
        try:
            task = load_task(short_task(kernel.task), registry=self.desk.home.suites)
            folder = write_export(kernel, task, Path.cwd())
        except OSError as error:
            self.desk.refuse("not written", f"{Path.cwd()}: {error.strerror or error}")
        except SuiteError as error:
            self.desk.refuse("not written", str(error))
        else:
            wrong = "" if attempt.verdict is Verdict.CORRECT else ", of a kernel that is not correct"
            self.notify(f"written: {folder.name}/{wrong}", markup=False)

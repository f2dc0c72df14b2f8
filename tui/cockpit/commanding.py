"""What a person decides and commands: asked for on screen, then sent to whoever holds the session.

Loads git and the engine's commands at the first order, not before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from textual.app import App

from sessions.names import split_attempt
from sessions.state import AttemptState, Decision, InstanceState
from tui.cockpit.decider import Decider, DecisionFailed
from tui.cockpit.dialogs import ConfirmDialog, LineDialog, ReasonDialog
from tui.cockpit.feed import Feed
from tui.cockpit.lines import clean
from tui.cockpit.verdict_head import certainty_words

REFUSAL_S = 15


class Host(Protocol):
    """What commands need of the app."""

    feed: Feed | None
    readonly: bool

    @property
    def app(self) -> App[Any]:
        """The app that shows dialogs and toasts."""
        ...

    def look_again(self) -> None:
        """Read events that another process wrote."""
        ...

    def reopen(self, session: str) -> None:
        """Open a session again, whose engine has started."""
        ...


class Commander:
    """Asks for what a command needs, sends it, and shows a refusal as a toast. Its effect comes as events."""

    def __init__(self, host: Host, decider: Decider) -> None:
        self._host = host
        self._decider = decider

    @property
    def can_act(self) -> bool:
        """False in a view for reading, and in the past of a replay."""
        feed = self._host.feed
        return not self._host.readonly and feed is not None and (feed.replay is None or feed.replay.at_end)

    def ask_and_decide(self, attempt: AttemptState, *, accepted: bool, decided: Callable[[], None]) -> None:
        """Ask for a reason, then decide, unless another person decided first; calls `decided` before it decides."""
        seen = attempt.decision

        def answered(why: str | None) -> None:
            now = self._decision(attempt.attempt)
            if why is None:
                return
            if now != seen:
                self._refuse(f"{attempt.attempt}: not decided", _meanwhile(now))
                return
            decided()
            self._send(attempt.attempt, accepted=accepted, why=why)

        instance = self._instance(attempt.attempt)
        goes_on = instance is not None and instance.finished is None
        dialog = ReasonDialog(
            attempt.attempt,
            accepted=accepted,
            known=certainty_words(attempt, instance),
            to_reflector=goes_on,
        )
        self._host.app.push_screen(dialog, answered)

    def undo_decision(self, attempt: str) -> None:
        """Take a decision back."""
        self._send(attempt, accepted=None)

    def toggle_pause(self, instance: str = "") -> None:
        """Pause an instance or the session, or let it go on."""
        feed = self._host.feed
        if feed is None:
            return
        held = feed.state.is_on_hold(instance) if instance else bool(feed.state.on_hold)
        name = instance or "the session"
        if held:
            self.give("go", f"{name} goes on", instance=instance)
        else:
            self.give("pause", f"{name} pauses: what runs ends, nothing more starts", instance=instance)

    def ask_hint(self, instance: str) -> None:
        """Ask for a hint, which the next attempt's prompt quotes."""

        def answered(text: str | None) -> None:
            if text is not None:
                self.give("hint", f"{instance}: the next attempt gets the hint", instance=instance, text=text)

        hint = "The prompts of the next attempt quote it.  enter: send, escape: cancel"
        self._host.app.push_screen(LineDialog(f"Hint for {instance}", hint=hint), answered)

    def ask_stop(self, instance: str = "") -> None:
        """Ask once, then stop an instance for good, or the session until somebody resumes it."""
        from tui.deciding import login_name

        def answered(answer: bool | None) -> None:  # noqa: FBT001 -- as the screen gives it
            if answer and instance:
                self.give("stop", f"{instance} stops", instance=instance)
            elif answer:
                self.give("stop", "the session stops", reason=f"stopped by {login_name()}")

        told = (
            "Its work in progress is cancelled, for good. Its best attempt is still examined."
            if instance
            else "Work in progress is cancelled. `wavedeck resume` goes on from there."
        )
        name = instance or "the session"
        self._host.app.push_screen(ConfirmDialog(f"Stop {name}?", consequence=told), answered)

    def ask_extend(self) -> None:
        """Ask for a number of further attempts in each instance."""

        def answered(text: str | None) -> None:
            if text is None:
                return
            if not text.isdecimal():
                self._refuse("not extended", f"{text!r} is no number; give the number of further attempts")
                return
            self.give("extend", f"{text} further attempts in each instance", iterations=int(text))

        hint = "A stopped or finished session goes on at once.  enter: extend, escape: cancel"
        self._host.app.push_screen(LineDialog("Further attempts of each instance", hint=hint), answered)

    def ask_fork(self, attempt: str) -> None:
        """Ask for a hint, then add an instance that starts from an attempt."""

        def answered(text: str | None) -> None:
            if text is not None:
                self.give("fork", f"a new instance starts from {attempt}", attempt=attempt, text=text)

        hint = "A new instance starts from its kernel.  enter: fork, escape: cancel"
        dialog = LineDialog(
            f"Fork {attempt}", hint=hint, placeholder="a hint for its first attempt (may stay empty)"
        )
        self._host.app.push_screen(dialog, answered)

    def pin(self, attempt: str) -> None:
        """Make an attempt the base of its instance's optimizations."""
        self.give("pin", f"{attempt} is the base of the next optimizations", attempt=attempt)

    def ban(self, attempt: str) -> None:
        """Let an instance build on an attempt no more."""
        self.give("ban", f"{attempt} is no base any more", attempt=attempt)

    def measure(self, attempt: str) -> None:
        """Time an attempt again on every GPU of the session."""
        from engine.commands import ALL_GPUS

        self.give("measure", f"{attempt} is timed again on every GPU", attempt=attempt, devices=ALL_GPUS)

    def lend(self, device: str) -> None:
        """Lend a GPU to others."""
        self.give("drain", f"GPU {device} is lent: what runs on it finishes", devices=(device,))

    def take_back(self, device: str) -> None:
        """Take a lent GPU back."""
        self.give("return", f"GPU {device} is used again", devices=(device,))

    def give(self, command: str, done: str, **arguments: object) -> None:
        """Send a command; `done` says what follows from it."""
        self._host.app.run_worker(
            self._command(command, done, arguments),
            name=f"sending {command}",
            group="decide",
            exit_on_error=False,
        )

    async def _command(self, command: str, done: str, arguments: dict[str, object]) -> None:
        from engine.commands import OPENING

        feed = self._host.feed
        if feed is None:
            return
        try:
            await self._decider.command(feed.session, command, **arguments)
        except DecisionFailed as error:
            self._refuse(f"{command}: refused", str(error))
            return
        self._host.app.notify(clean(done), markup=False)
        if feed.replay is not None and command in OPENING:
            self._host.reopen(feed.session)
        else:
            self._look_again()

    def _instance(self, attempt: str) -> InstanceState | None:
        feed = self._host.feed
        return feed.state.instances.get(split_attempt(attempt).instance) if feed is not None else None

    def _decision(self, attempt: str) -> Decision | None:
        instance = self._instance(attempt)
        attempts = instance.attempts if instance is not None else []
        return next((each.decision for each in attempts if each.attempt == attempt), None)

    def _send(self, attempt: str, *, accepted: bool | None, why: str = "") -> None:
        self._host.app.run_worker(
            self._decide(attempt, accepted=accepted, why=why),
            name="sending the decision",
            group="decide",
            exit_on_error=False,
        )

    async def _decide(self, attempt: str, *, accepted: bool | None, why: str) -> None:
        feed = self._host.feed
        if feed is None:
            return
        try:
            if accepted is None:
                await self._decider.undo(feed.session, attempt)
            else:
                await self._decider.decide(feed.session, attempt, accepted=accepted, why=why)
        except DecisionFailed as error:
            self._refuse(f"{attempt}: not decided", str(error))
            return
        self._look_again()

    def _look_again(self) -> None:
        feed = self._host.feed
        if feed is not None and feed.live is not None:
            feed.live.look_again()
        self._host.look_again()

    def _refuse(self, title: str, why: str) -> None:
        self._host.app.notify(clean(why), title=title, severity="error", timeout=REFUSAL_S, markup=False)


def _meanwhile(decision: Decision | None) -> str:
    if decision is None:
        return "another person undid the decision meanwhile; look at the attempt, then decide again"
    said = "accepted" if decision.accepted else "rejected"
    why = f" ({decision.why})" if decision.why else ""
    who = decision.by or "another person"
    return f"{who} {said} it meanwhile{why}; undo that first, or leave it"

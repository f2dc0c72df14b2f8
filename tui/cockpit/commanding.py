"""What a person decides and commands: asked for on screen, then sent to whoever holds the session.

Loads git and the engine's commands at the first order, not before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from textual.app import App, SuspendNotSupported

from sessions.names import split_attempt
from sessions.state.state import AttemptState, Decision, InstanceState
from tui.cockpit.decider import Decider, DecisionFailed
from tui.cockpit.dialogs import ConfirmDialog, LineDialog, ReasonDialog
from tui.cockpit.editing import NotEdited, edited
from tui.cockpit.feed import Feed
from tui.cockpit.lines import clean
from tui.cockpit.review_reasons import decision_words
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

        feed = self._host.feed
        if feed is None:
            return
        dialog = ReasonDialog(
            attempt.attempt,
            accepted=accepted,
            follows=decision_words(feed.state, attempt, accepted=accepted, over=feed.is_over),
            known=certainty_words(attempt, self._instance(attempt.attempt)),
        )
        self._host.app.push_screen(dialog, answered)

    def decide(self, attempt: str, *, accepted: bool, why: str) -> None:
        """Accept or reject an attempt without further questions."""
        self._send(attempt, accepted=accepted, why=why)

    def undo_decision(self, attempt: str) -> None:
        """Take a decision back."""
        self._send(attempt, accepted=None)

    def pause(self, instances: Sequence[str]) -> None:
        """Pause instances, or the session if there are none."""
        for instance in instances or ("",):
            name = instance or "the session"
            self.give("pause", f"{name} pauses: what runs ends, nothing more starts", instance=instance)

    def go(self, instances: Sequence[str]) -> None:
        """Let instances go on, or the session if there are none."""
        for instance in instances or ("",):
            self.give("go", f"{instance or 'the session'} goes on", instance=instance)

    def toggle_pause(self, instances: Sequence[str] = ()) -> None:
        """Pause instances (none: the session), or let them go on if they are all paused."""
        feed = self._host.feed
        if feed is None:
            return
        state = feed.state
        paused = all(map(state.is_on_hold, instances)) if instances else "" in state.on_hold
        if paused:
            self.go(instances)
        else:
            self.pause([instance for instance in instances if not state.is_on_hold(instance)])

    def hint(self, instances: Sequence[str], text: str) -> None:
        """Give instances a hint, which the prompts of their next attempts quote."""
        for instance in instances:
            self.give("hint", f"{instance}: the next attempt gets the hint", instance=instance, text=text)

    def ask_hint(self, instances: Sequence[str]) -> None:
        """Ask for a hint, then give it to instances."""

        def answered(text: str | None) -> None:
            if text is not None:
                self.hint(instances, text)

        about = "The prompts of the next attempt quote it.  enter: send, escape: cancel"
        self._host.app.push_screen(LineDialog(f"Hint for {', '.join(instances)}", hint=about), answered)

    def ask_stop(self, instances: Sequence[str] = ()) -> None:
        """Ask once, then stop instances for good, or the session (if there are none) until somebody resumes it."""
        from tui.deciding import login_name

        def answered(answer: bool | None) -> None:  # noqa: FBT001 -- as the screen gives it
            if not answer:
                return
            for instance in instances:
                self.give("stop", f"{instance} stops", instance=instance)
            if not instances:
                self.give("stop", "the session stops", reason=f"stopped by {login_name()}")

        consequence = (
            "Its work in progress is cancelled, for good. Its best attempt is still examined."
            if instances
            else "Work in progress is cancelled. `wavedeck resume` goes on from there."
        )
        name = ", ".join(instances) or "the session"
        self._host.app.push_screen(ConfirmDialog(f"Stop {name}?", consequence=consequence), answered)

    def extend(self, iterations: int) -> None:
        """Give each instance more attempts."""
        self.give("extend", f"{iterations} further attempts in each instance", iterations=iterations)

    def ask_extend(self) -> None:
        """Ask for a number of further attempts in each instance."""

        def answered(text: str | None) -> None:
            if text is None:
                return
            if not text.isdecimal():
                self._refuse("not extended", f"{text!r} is no number; give the number of further attempts")
                return
            self.extend(int(text))

        hint = "A stopped or finished session goes on at once.  enter: extend, escape: cancel"
        self._host.app.push_screen(LineDialog("Further attempts of each instance", hint=hint), answered)

    def fork(self, attempt: str, hint: str) -> None:
        """Add an instance that starts from an attempt."""
        self.give("fork", f"a new instance starts from {attempt}", attempt=attempt, text=hint)

    def ask_fork(self, attempt: str) -> None:
        """Ask for a hint, then add an instance that starts from an attempt."""

        def answered(text: str | None) -> None:
            if text is not None:
                self.fork(attempt, text)

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
        from engine.process.commands import ALL_GPUS

        self.give("measure", f"{attempt} is timed again on every GPU", attempt=attempt, devices=ALL_GPUS)

    def lend(self, device: str) -> None:
        """Lend a GPU to others."""
        self.give("drain", f"GPU {device} is lent: what runs on it finishes", devices=(device,))

    def take_back(self, device: str) -> None:
        """Take a lent GPU back."""
        self.give("return", f"GPU {device} is used again", devices=(device,))

    def title(self, text: str) -> None:
        """Give the session a title."""
        self.give("title", f"the session is now {text!r}", text=text)

    def edit(self, attempt: str) -> None:
        """Open an attempt's kernel in the person's editor; a changed kernel is judged as an instance of its own."""
        state = self._find(attempt)
        if state is None or not state.source:
            self._refuse("edit", f"{attempt} has no code")
            return
        try:
            with self._host.app.suspend():
                source = edited(state.source, os.environ)
        except SuspendNotSupported:
            self._refuse("edit", "no editor can be opened from here; use: wavedeck edit")
        except NotEdited as error:
            self._refuse("edit", str(error))
        else:
            if source == state.source:
                self._host.app.notify("nothing was changed, so nothing is judged")
                return
            done = f"the edit of {attempt} is judged in an instance of its own"
            self.give("edit", done, attempt=attempt, source=source)

    def give(self, command: str, done: str, **arguments: object) -> None:
        """Send a command; `done` says what follows from it."""
        self._host.app.run_worker(
            self._command(command, done, arguments),
            name=f"sending {command}",
            group="decide",
            exit_on_error=False,
        )

    async def _command(self, command: str, done: str, arguments: dict[str, object]) -> None:
        from engine.process.commands import OPENING

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

    def _find(self, attempt: str) -> AttemptState | None:
        instance = self._instance(attempt)
        known = instance.attempts if instance is not None else []
        return next((state for state in known if state.attempt == attempt), None)

    def _decision(self, attempt: str) -> Decision | None:
        state = self._find(attempt)
        return state.decision if state is not None else None

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

"""Requests of a screen to the app: the only way from a screen, or the `:` line, to the session."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from textual.app import App, SuspendNotSupported
from textual.message import Message
from textual.screen import ModalScreen

from engine.errors import EngineError
from sessions import recorded_example
from sessions.errors import SessionsError
from sessions.events import DecisionMade, PersonCommand
from sessions.home import Home
from sessions.names import split_attempt
from sessions.state.state import AttemptState, InstanceState
from tui.actions.catalogue import Action, Group, done_words
from tui.actions.line import WHOLE_SESSION, Order
from tui.cockpit.data.feed import Feed
from tui.cockpit.desk.messages import (
    FindWords,
    GoToAttempt,
    LeaveSession,
    OpenFleet,
    OpenInstance,
    OpenLatency,
    OpenReport,
    OpenReview,
)
from tui.cockpit.dialogs.dialogs import ConfirmDialog, ReasonDialog
from tui.cockpit.draw.lines import Span, clean
from tui.config import Preferences
from tui.diagnostics import Complaint
from tui.facts.attempt import consequences, decided_words
from tui.facts.evaluation.certainty import certainty_words

ASKING = ("edit", "retire", "stop")
"""Actions that ask the person for something before they are sent."""
ELSEWHERE = "the example is from another machine and for reading only; c at Home starts a session here"
READ_ONLY = "this view is for reading only"
PAST = "in a replay this is possible at its end only: $ goes there"
LOOK_S = 0.1
"""Between two looks whether a dialog is open."""


class Decider:
    """Asks the session's engine while one runs, else writes to the store. Loads git at the first command, not before.

    The effect of a command is seen through the session's events alone. Commands go one after the other: one that writes
    holds the session as an engine does, and the next would look for that engine.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._turn = asyncio.Lock()

    async def give(self, session: str, command: PersonCommand) -> None:
        """Give a command; it is durable when this returns. New work starts an engine if none runs."""
        from tui.actions.send import give

        async with self._turn:
            await give(self._home, session, command)


class NotEdited(Exception):
    """The editor could not be used; the message is one line that says why and what to do."""


def edited(source: str, environ: Mapping[str, str]) -> str:
    """Return the source as the person left it in `$VISUAL`, `$EDITOR` or vi; raises `NotEdited`."""
    editor = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="wavedeck-") as folder:
        file = Path(folder) / "kernel.py"
        file.write_text(source, encoding="utf-8")
        try:
            done = subprocess.run([*shlex.split(editor), str(file)], check=False)
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise NotEdited(
                f"{editor} cannot edit the kernel ({error}); set EDITOR to another one"
            ) from error
    if done.returncode:
        raise NotEdited(f"{editor} ended with status {done.returncode}; nothing is sent")
    return text


class Desk(Protocol):
    """The app, as screens see it. Where to go next is not asked here, but posted as a message (`messages`)."""

    feed: Feed | None
    """The open session; `None` at Home."""
    readonly: bool
    commander: Commander
    """Sends decisions and commands."""
    home: Home
    preferences: Preferences

    def remarks(self) -> list[Span]:
        """Return what the header says of the cockpit itself: mouse off."""

    def frame(self) -> None:
        """Fold what is due and repaint it now."""

    def post_message(self, message: Message) -> bool:
        """Ask for another screen (`messages`)."""

    def action_explain(self) -> None:
        """Show the help of the focused pane."""

    def action_command_line(self, text: str = "") -> None:
        """Ask for a command on the bottom line, which begins with this text."""

    def leave(self) -> None:
        """Leave the cockpit; engines go on."""

    def clock(self) -> float:
        """Return monotonic seconds."""

    def wall(self) -> float:
        """Return seconds since the epoch: now, the moment that a replay shows, or the end of a session that is over."""

    def present(self) -> float:
        """Return seconds since the epoch: now, or the moment that a replay shows."""

    @property
    def app(self) -> App[Any]:
        """The app itself, for dialogs and toasts."""

    def look_again(self) -> None:
        """Read events that another process wrote."""

    def reopen(self, session: str) -> None:
        """Open a session again, whose engine has started."""

    def refuse(self, title: str, why: str) -> None:
        """Show why something was not done."""


class Commander:
    """Asks for what a command needs, sends it, and shows a refusal as a toast. Its effect comes as events."""

    def __init__(self, host: Desk, decider: Decider) -> None:
        self._host = host
        self._decider = decider
        self.pending: list[tuple[str, str]] = []
        """(session, command in words) of each command without an answer, in the order in which they are sent."""

    def unsent(self) -> tuple[str, ...]:
        """Return one line for each command without an answer; only the first of them was begun."""
        return tuple(
            f"not sent to {session}: {words}" if position else f"not known whether {session} has: {words}"
            for position, (session, words) in enumerate(self.pending)
        )

    @property
    def can_act(self) -> bool:
        """False in a view for reading, in the example, and in the past of a replay."""
        feed = self._host.feed
        if feed is None or self._host.readonly or elsewhere_words(feed):
            return False
        return feed.replay is None or feed.replay.at_end

    def why_not(self, order: Order | None) -> str:
        """Return why an order cannot be given now; empty if it can. `None`: there is nothing to give it about."""
        feed = self._host.feed
        if feed is None or self._host.readonly:
            return READ_ONLY
        if not self.can_act:
            return elsewhere_words(feed) or PAST
        if order is None:
            return "there is nothing here yet"
        return order.refusal(feed.state)

    def ask_and_decide(self, attempt: AttemptState, *, accepted: bool, decided: Callable[[], None]) -> None:
        """Ask for a reason, then decide, unless another person decided first; calls `decided` before it decides."""
        seen = attempt.decision

        def answered(why: str | None) -> None:
            if why is None:
                return
            state = self._find(attempt.attempt)
            now = state.decision if state is not None else None
            if now != seen:
                self._host.refuse(f"{attempt.attempt}: not decided", _meanwhile(now))
                return
            decided()
            self.carry_out(Order("accept" if accepted else "reject", attempt=attempt.attempt, text=why))

        feed = self._host.feed
        if feed is None:
            return
        dialog = ReasonDialog(
            attempt.attempt,
            accepted=accepted,
            follows=consequences(feed.state, attempt, accepted=accepted, over=feed.is_over),
            known=clean(certainty_words(attempt, self._instance(attempt.attempt))),
        )
        self._host.app.push_screen(dialog, answered)

    def carry_out(self, order: Order, **fields: object) -> None:
        """Do what an order says; ask once before something ends. `fields` are those that the `:` line does not have."""
        feed = self._host.feed
        if feed is None or order.name not in ASKING:
            self._give(order, **fields)
        elif refusal := order.refusal(feed.state):
            self._host.refuse(f"{order.name}: refused", refusal)
        elif order.name == "edit":
            self._edit(order)
        else:
            self._confirm(order, feed)

    def toggle_pause(self, instances: Sequence[str]) -> None:
        """Pause instances, or end their pause if they are all paused."""
        feed = self._host.feed
        if feed is None:
            return
        going_on = tuple(instance for instance in instances if not feed.state.is_on_hold(instance))
        self.carry_out(Order("pause", going_on) if going_on else Order("unpause", tuple(instances)))

    def _confirm(self, order: Order, feed: Feed) -> None:
        def answered(answer: bool | None) -> None:  # noqa: FBT001 -- as the screen gives it
            if answer:
                self._give(order)

        name = f" {feed.state.title or feed.session}" if order.target == WHOLE_SESSION else ""
        question = clean(f"{order.name.capitalize()} {order.target}{name}?")
        self._host.app.push_screen(ConfirmDialog(question, consequence=order.action.does), answered)

    def _edit(self, order: Order) -> None:
        """Open an attempt's kernel in the person's editor; a changed kernel is judged as an instance of its own."""
        attempt = self._find(order.attempt)
        before = attempt.source if attempt is not None else None
        try:
            with self._host.app.suspend():
                source = edited(before or "", os.environ)
        except SuspendNotSupported:
            self._host.refuse("edit", "no editor can be opened from here; use: wavedeck steer edit")
        except NotEdited as error:
            self._host.refuse("edit", str(error))
        else:
            if source.strip() and source != before:
                self._give(order, source=source)
            else:
                why = "nothing was changed" if source.strip() else "the edit is empty"
                self._host.app.notify(f"{why}, so nothing is judged")

    def _give(self, order: Order, **fields: object) -> None:
        """Send the commands of an order; `fields` are those that the `:` line does not have."""
        feed = self._host.feed
        if feed is None:
            return
        for command in order.commands(**fields):
            pending = (feed.session, clean(f"{order.name} {command.target or 'the session'}"))
            self.pending.append(pending)
            self._host.app.run_worker(
                self._send(feed, pending, order.action, command),
                name=f"sending {order.name}",
                group="decide",
                exit_on_error=False,
            )

    async def _send(
        self, feed: Feed, pending: tuple[str, str], action: Action, command: PersonCommand
    ) -> bool:
        """Returns False if the command was refused."""
        try:
            await self._decider.give(feed.session, command)
        except (EngineError, SessionsError, Complaint) as error:
            self._host.refuse(f"{action.name}: refused", str(error))
            return False
        finally:
            self.pending.remove(pending)
        if action.group is not Group.DECIDE:
            done = done_words(action, command, command.target or "the session")
            self._host.app.notify(clean(done), markup=False)
        if feed.replay is not None and command.opens:
            await self._reopen(feed.session)
        else:
            self._host.look_again()
        return True

    async def _reopen(self, session: str) -> None:
        """Show a session that goes on, unless the person left it; a dialog and the `:` line close first."""
        looks_without_dialog = 0
        # Two looks: the answer of a dialog is still a message when the dialog has closed, and may open the next one.
        while looks_without_dialog < 2:
            await asyncio.sleep(LOOK_S)
            is_asking = isinstance(self._host.app.screen, ModalScreen)
            looks_without_dialog = 0 if is_asking else looks_without_dialog + 1
        feed = self._host.feed
        if feed is None or feed.session != session:
            self._host.app.notify(f"{session} goes on; open it at Home", timeout=15, markup=False)
        elif feed.replay is not None:
            self._host.reopen(session)

    def _find(self, attempt: str) -> AttemptState | None:
        instance = self._instance(attempt)
        known = instance.attempts if instance is not None else []
        return next((state for state in known if state.attempt == attempt), None)

    def _instance(self, attempt: str) -> InstanceState | None:
        feed = self._host.feed
        return feed.state.instances.get(split_attempt(attempt).instance) if feed is not None else None


def _meanwhile(decision: DecisionMade | None) -> str:
    if decision is None:
        return "another person undid the decision meanwhile; look at the attempt, then decide again"
    return f"meanwhile {decided_words(decision)}; undo that first, or leave it"


def elsewhere_words(feed: Feed) -> str:
    """Return why the session takes no command; empty except in the example."""
    replay = feed.replay
    return ELSEWHERE if replay is not None and replay.session == recorded_example.NAME else ""


SCREENS: dict[str, type[Message]] = {
    "fleet": OpenFleet,
    "review": OpenReview,
    "report": OpenReport,
    "home": LeaveSession,
}
"""Messages without arguments, by the name of their action."""


def carry_out(order: Order, desk: Desk) -> None:
    """Do what an order says, through the same commands as the keys."""
    message = destination(order)
    if message is not None:
        desk.post_message(message)
    elif order.name == "help":
        desk.action_explain()
    elif order.name == "quit":
        desk.leave()
    else:
        desk.commander.carry_out(order)


def destination(order: Order) -> Message | None:
    """Return the message of an action that leads to another screen; `None` for any other action."""
    match order.name:
        case "latency":
            return OpenLatency(order.attempt)
        case "attempt":
            return GoToAttempt(order.text)
        case "find":
            return FindWords(order.text)
        case "show":
            key, _, number = order.text.rpartition("/")  # the task's suite ends in a slash too
            is_attempt = "#" in key and number.isdecimal()
            return OpenInstance(key, int(number)) if is_attempt else OpenInstance(order.text, None)
        case name:
            return SCREENS[name]() if name in SCREENS else None

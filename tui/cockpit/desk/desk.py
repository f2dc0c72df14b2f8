"""What a screen may ask of the app: the only way from a screen, or the `:` line, to the session."""

from __future__ import annotations

from typing import Protocol

from textual.message import Message

from sessions.home import Home
from tui.actions.catalogue import When
from tui.actions.line import Order
from tui.cockpit.desk.commanding import Commander, Host
from tui.cockpit.desk.messages import (
    LeaveSession,
    OpenFleet,
    OpenInstance,
    OpenLatency,
    OpenReport,
    OpenReview,
)
from tui.cockpit.draw.lines import Span
from tui.cockpit.terminal.preferences import Preferences


class Desk(Host, Protocol):
    """The app, as screens see it. Where to go next is not asked here, but posted as a message (`messages`)."""

    commander: Commander
    """Sends decisions and commands."""
    home: Home
    preferences: Preferences

    def remarks(self) -> list[Span]:
        """Return what the header says of the cockpit itself: mouse off."""
        ...

    def frame(self) -> None:
        """Fold what is due and repaint it now."""
        ...

    def post_message(self, message: Message) -> bool:
        """Ask for another screen (`messages`)."""
        ...

    def action_explain(self) -> None:
        """Show the help of the focused pane."""
        ...

    def leave(self) -> None:
        """Leave the cockpit; engines go on."""
        ...

    def clock(self) -> float:
        """Return monotonic seconds."""
        ...

    def wall(self) -> float:
        """Return seconds since the epoch: now, the moment that a replay shows, or the end of a session that is over."""
        ...

    def present(self) -> float:
        """Return seconds since the epoch: now, or the moment that a replay shows."""
        ...


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
    elif When.READING not in order.action.when and not desk.commander.can_act:
        desk.refuse(order.name, "this view is for reading only")
    else:
        desk.commander.carry_out(order)


def destination(order: Order) -> Message | None:
    """Return the message of an action that leads to another screen; `None` for any other action."""
    match order.name:
        case "latency":
            return OpenLatency(order.attempt)
        case "show":
            key, _, number = order.text.partition("/")
            return OpenInstance(key, int(number) if number.isdecimal() else None)
        case name:
            return SCREENS[name]() if name in SCREENS else None

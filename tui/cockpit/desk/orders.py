"""Carries out what a person typed on the `:` line."""

from __future__ import annotations

from textual.message import Message

from tui.actions.catalogue import When
from tui.actions.line import Order
from tui.cockpit.desk.desk import Desk
from tui.cockpit.desk.messages import (
    LeaveSession,
    OpenFleet,
    OpenInstance,
    OpenLatency,
    OpenReport,
    OpenReview,
)

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

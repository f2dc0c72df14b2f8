"""Carries out what a person typed on the `:` line."""

from __future__ import annotations

from textual.message import Message

from tui.cockpit.commanding import Commander
from tui.cockpit.desk import Desk
from tui.cockpit.messages import (
    LeaveSession,
    OpenFleet,
    OpenInstance,
    OpenLatency,
    OpenReport,
    OpenReview,
)
from tui.cockpit.verbs import Order


def carry_out(order: Order, desk: Desk) -> None:
    """Do what an order says, through the same commands as the keys."""
    message = destination(order)
    if message is not None:
        desk.post_message(message)
    elif order.verb == "help":
        desk.explain()
    elif order.verb == "quit":
        desk.leave()
    elif not desk.commander.can_act:
        desk.refuse(order.verb, "this view is for reading only")
    else:
        _command(order, desk.commander)


def destination(order: Order) -> Message | None:
    """Return the message of a verb that leads to another screen; `None` for any other verb."""
    match order.verb:
        case "fleet":
            return OpenFleet()
        case "latency":
            return OpenLatency(order.attempt)
        case "review":
            return OpenReview()
        case "report":
            return OpenReport()
        case "home":
            return LeaveSession()
        case "open":
            key, _, number = order.text.partition("/")
            return OpenInstance(key, int(number) if number.isdecimal() else None)
        case _:
            return None


def _command(order: Order, commander: Commander) -> None:
    attempt, text = order.attempt, order.text
    match order.verb:
        case "pause":
            commander.pause(order.instances)
        case "go":
            commander.go(order.instances)
        case "stop":
            commander.ask_stop(order.instances)
        case "hint":
            commander.hint(order.instances, text)
        case "pin":
            commander.pin(attempt)
        case "ban":
            commander.ban(attempt)
        case "fork":
            commander.fork(attempt, text)
        case "edit":
            commander.edit(attempt)
        case "measure":
            commander.measure(attempt)
        case "accept" | "reject":
            commander.decide(attempt, accepted=order.verb == "accept", why=text)
        case "undo":
            commander.undo_decision(attempt)
        case "extend":
            commander.extend(int(text))
        case "gpu":
            commander.lend(attempt) if text == "drain" else commander.take_back(attempt)
        case _:
            commander.title(text)

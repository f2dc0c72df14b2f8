"""The commands that a person can give at the moment."""

from __future__ import annotations

from collections.abc import Iterator

from sessions.state.state import AttemptState, InstanceState, SessionState
from tui.actions.catalogue import ACTIONS, Action, Takes
from tui.actions.line import INSTANCES, Order


def possible_orders(
    state: SessionState, instance: InstanceState | None, attempt: AttemptState | None
) -> Iterator[Order]:
    """Yield the possible commands about this instance, this attempt, the session and its GPUs."""
    for action in ACTIONS.values():
        orders = _orders(action, state, instance, attempt) if action.event else ()
        yield from (order for order in orders if not order.refusal(state))


def _orders(
    action: Action, state: SessionState, instance: InstanceState | None, attempt: AttemptState | None
) -> Iterator[Order]:
    """Yield the command for each thing that it may be about."""
    match action.takes:
        case takes if takes in INSTANCES:
            if instance is not None:
                yield Order(action.name, (instance.key,))
            if action.takes is Takes.INSTANCES_OR_SESSION:
                yield Order(action.name)
        case Takes.ATTEMPT | Takes.FORK | Takes.DECISION:
            if attempt is not None:
                yield Order(action.name, attempt=attempt.attempt)
        case Takes.GPU:
            for gpu in state.gpus:
                yield Order(action.name, gpu=gpu, text="return" if gpu in state.lent else "lend")
        case _:
            yield Order(action.name)

"""Which actions are possible for a session, an instance and an attempt. The engine may refuse further ones."""

from __future__ import annotations

from collections.abc import Iterator

from harness import Verdict
from sessions.state.state import AttemptState, InstanceState, SessionState
from tui.actions.catalogue import ACTIONS, Action, Needs, Takes, When
from tui.actions.line import Order, gpus_of


def is_possible(
    name: str,
    state: SessionState,
    *,
    instance: InstanceState | None = None,
    attempt: AttemptState | None = None,
) -> bool:
    """True if the session is in a state for the action, and instance and attempt have what it needs."""
    action = ACTIONS[name]
    needs = action.needs
    if standing(state) not in action.when:
        return False
    paused = state.is_on_hold(instance.key if instance is not None else "")
    kept = {
        Needs.GOING_ON: instance is None or not instance.finished,
        Needs.HELD: paused,
        Needs.NOT_HELD: not paused,
        Needs.SOURCE: attempt is not None and bool(attempt.source),
        Needs.JUDGED: attempt is not None and attempt.verdict is not None,
        Needs.CORRECT: attempt is not None and attempt.verdict is Verdict.CORRECT,
        Needs.DECIDED: attempt is not None and attempt.decision is not None,
        Needs.GPUS: bool(gpus_of(state)),
    }
    return all(kept[need] for need in needs)


def standing(state: SessionState) -> When:
    """Return whether the session is finished, at rest, or running as far as its events say."""
    if state.finished:
        return When.FINISHED
    return When.AT_REST if state.stopped is not None else When.RUNNING


def possible_orders(
    state: SessionState, instance: InstanceState | None, attempt: AttemptState | None
) -> Iterator[Order]:
    """Yield the possible commands about this instance, this attempt, the session and its GPUs."""
    for action in ACTIONS.values():
        for order in _orders(action, state, instance, attempt) if action.done else ():
            about = instance if order.instances or order.attempt else None
            if is_possible(action.name, state, instance=about, attempt=attempt):
                yield order


def _orders(
    action: Action, state: SessionState, instance: InstanceState | None, attempt: AttemptState | None
) -> Iterator[Order]:
    """Yield the command for each thing that it may be about."""
    match action.takes:
        case Takes.INSTANCES | Takes.INSTANCES_OR_SESSION | Takes.HINT:
            if instance is not None:
                yield Order(action.name, (instance.key,))
            if action.takes is Takes.INSTANCES_OR_SESSION:
                yield Order(action.name)
        case Takes.ATTEMPT | Takes.FORK | Takes.DECISION:
            if attempt is not None:
                yield Order(action.name, attempt=attempt.attempt)
        case Takes.GPU:
            for gpu in gpus_of(state):
                yield Order(action.name, gpu=gpu, text="return" if gpu in state.lent else "lend")
        case _:
            yield Order(action.name)

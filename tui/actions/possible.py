"""Which actions are possible for a session, an instance and an attempt. The engine may refuse further ones."""

from __future__ import annotations

from collections.abc import Iterator

from harness import Verdict
from sessions.state.state import AttemptState, InstanceState, SessionState
from tui.actions.catalogue import ACTIONS, Action, Needs, Takes, When
from tui.actions.line import Order, gpus_of

STANDINGS = {
    When.RUNNING: "the session is running",
    When.AT_REST: "the session is not running",
    When.FINISHED: "the session is finished",
}
WHY_NOT = {
    Needs.GOING_ON: "the instance has ended",
    Needs.HELD: "nothing is paused",
    Needs.NOT_HELD: "it is paused already",
    Needs.SOURCE: "the attempt has no code yet",
    Needs.JUDGED: "the attempt is not judged yet",
    Needs.CORRECT: "the attempt is not correct",
    Needs.DECIDED: "nobody decided about the attempt",
    Needs.GPUS: "the session has no GPU",
}


def is_possible(
    name: str,
    state: SessionState,
    *,
    instance: InstanceState | None = None,
    attempt: AttemptState | None = None,
) -> bool:
    """True if the session is in a state for the action, and instance and attempt have what it needs."""
    return not why_not(name, state, instance=instance, attempt=attempt)


def why_not(
    name: str,
    state: SessionState,
    *,
    instance: InstanceState | None = None,
    attempt: AttemptState | None = None,
) -> str:
    """Returns the first reason why the action is not possible; empty if it is."""
    action = ACTIONS[name]
    if standing(state) not in action.when:
        return STANDINGS[standing(state)]
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
    return next((WHY_NOT[need] for need in action.needs if not kept[need]), "")


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

"""`--allocate best`: iterations move from tasks that need no other attempt to the task where one is worth most.

A task is hopeless after `HOPELESS` judged attempts without a correct one. When an instance ends before its iterations
are spent, because its task is solved or hopeless, the rest goes to one instance of another task. Tasks without a correct
attempt come first, then tasks with fewer attempts.
"""

from __future__ import annotations

from engine.run.shared import Shared
from sessions.events import EndReason, IterationsMoved, Origin
from sessions.state.state import InstanceState, SessionState

HOPELESS = 10
"""Judged attempts of a task, over all instances, after which it counts as hopeless if none is correct."""
DONE = frozenset({EndReason.SPEEDUP_REACHED, EndReason.AT_ROOF, EndReason.SOLVED})
"""Ends that need no other attempt of the task."""
GIVING = DONE | {EndReason.NO_GAIN, EndReason.HOPELESS}
"""Ends whose unused iterations move."""


def is_hopeless(state: SessionState, task: str) -> bool:
    """True if many attempts of the task were judged, and none is correct."""
    judged = [
        attempt
        for instance in _instances_of(state, task)
        for attempt in instance.attempts
        if attempt.verdict is not None and attempt.verdict.counted
    ]
    return len(judged) >= HOPELESS and not any(instance.solved for instance in _instances_of(state, task))


def best_receiver(shared: Shared, giver: InstanceState) -> str | None:
    """Returns the instance of another task where another attempt is worth most; `None` if there is none."""
    state = shared.recorder.state
    edits = {key for key, fork in state.forks.items() if fork.source}
    done = {instance.task for instance in state.instances.values() if instance.finished in DONE}
    receivers = [
        instance
        for instance in state.instances.values()
        if instance.finished in (None, EndReason.ITERATIONS)
        and instance.task not in done | {giver.task}
        and instance.key not in shared.ending | edits | set(state.retired)
        and not is_hopeless(state, instance.task)
    ]

    def worth(instance: InstanceState) -> tuple[bool, int, int]:
        """Sort key; the least is worth most."""
        siblings = _instances_of(state, instance.task)
        solved = any(sibling.solved for sibling in siblings)
        return (
            solved,
            sum(sum(state.phases(sibling.key)) for sibling in siblings),
            sum(state.phases(instance.key)),
        )

    return min(receivers, key=worth).key if receivers else None


def has_taker(shared: Shared, giver: InstanceState) -> bool:
    """True if another instance takes the iterations of a hopeless one, or took them before the engine died."""
    return shared.recorder.state.given_away(giver.key) > 0 or best_receiver(shared, giver) is not None


def gift_of(shared: Shared, key: str, reason: EndReason) -> list[IterationsMoved]:
    """Returns the gift of an instance's unused iterations to the best receiver; empty if nothing moves.

    Record the gift with the end of the instance, so that no receiver ends between the two. An engine that dies between
    the two repeats the end, but not the gift.
    """
    state = shared.recorder.state
    giver = state.instances[key]
    made = sum(attempt.origin is not Origin.TUNE for attempt in giver.attempts)
    unused = sum(state.phases(key)) - state.given_away(key) - made
    if shared.plan.allocate != "best" or reason not in GIVING or unused <= 0:
        return []
    receiver = best_receiver(shared, giver)
    return [IterationsMoved(source=key, to=receiver, iterations=unused)] if receiver is not None else []


def _instances_of(state: SessionState, task: str) -> list[InstanceState]:
    return [instance for instance in state.instances.values() if instance.task == task]

"""Which attempt of an instance a screen shows: the newest, a base, the next of a kind; the order of instances."""

from __future__ import annotations

from sessions.state.state import AttemptState, InstanceState, SessionState
from tui.facts.attempt import editor_of, origin_words


def newest(instance: InstanceState) -> AttemptState | None:
    """Return the latest attempt in progress; without one the last attempt; `None` without attempts."""
    busy = [attempt for attempt in instance.attempts if attempt.word not in ("wait", "exam")]
    return next(reversed(busy or instance.attempts), None)


def find(state: SessionState, key: str, number: int | None) -> AttemptState | None:
    """Return an instance's attempt of this number; without a number `newest`; `None` if there are no attempts."""
    instance = state.instances.get(key)
    if instance is None or not instance.attempts:
        return None
    if number is None:
        return newest(instance)
    return numbered(instance, number) or instance.attempts[-1]


def numbered(instance: InstanceState, number: int | None) -> AttemptState | None:
    """Return the attempt of this number, if there is one."""
    return next((attempt for attempt in instance.attempts if attempt.number == number), None)


def base_of(state: SessionState, attempt: AttemptState) -> AttemptState | None:
    """Return the attempt that this one was made from, which may be of another instance; `None` if there is none."""
    if not attempt.base:
        return None
    try:
        return state.attempt(attempt.base)
    except KeyError:
        return None


def short_name(attempt: str) -> str:
    """Return the name without its task: `#3/5` of `softmax#3/5`."""
    return f"#{attempt.rpartition('#')[2]}"


def lineage(state: SessionState, attempt: AttemptState) -> str:
    """Return where the attempt comes from: `origin: fresh`, `optimize of #3/5`, `edit by ada of #3/5`."""
    if not attempt.base:
        return f"origin: {attempt.origin.value}"
    return origin_words(attempt, short_name(attempt.base), editor_of(state, attempt))


def next_of_kind(instance: InstanceState, current: int, kind: str, direction: int) -> AttemptState | None:
    """Return the next attempt after (or before) attempt `current` that is `waiting`, the `best` or a `failure`."""
    later = [
        attempt
        for attempt in instance.attempts
        if (attempt.number - current) * direction > 0 and is_of_kind(instance, attempt, kind)
    ]
    return min(later, key=lambda attempt: abs(attempt.number - current), default=None)


def is_of_kind(instance: InstanceState, attempt: AttemptState, kind: str) -> bool:
    """True if the attempt is `waiting`, the `best` of its instance or a `failure`: the kinds of all jumps."""
    if kind == "waiting":
        return attempt.waiting
    if kind == "best":
        return attempt is instance.best_correct
    return attempt.verdict is not None and attempt.verdict.is_failure


def ordered_instances(state: SessionState) -> list[InstanceState]:
    """Return the instances by the session's order of tasks, then by number."""
    tasks = {task: place for place, task in enumerate(state.started.tasks)} if state.started else {}
    return sorted(
        state.instances.values(),
        key=lambda instance: (tasks.get(instance.task, len(tasks)), instance.task, instance.instance),
    )

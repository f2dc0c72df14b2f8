"""The state after any number of a session's events, from copies that are kept on the way.

A jump folds on from the nearest copy before it.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sessions.events import AnyEvent
from sessions.journal.codec import Skipped
from sessions.state.folding import apply
from sessions.state.state import AttemptState, CallState, DeviceState, InstanceState, SessionState, Words

EVERY = 2500
"""Events between two copies. A jump folds fewer, which takes some 10 ms."""

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", SessionState, InstanceState, AttemptState, CallState, DeviceState)


class Checkpoints:
    """Folds a session's events from the first to the last, and jumps to any of them afterwards."""

    def __init__(self, events: Sequence[AnyEvent | Skipped]) -> None:
        self._events = events
        self._counts = [0]
        self._states = [SessionState()]
        self._resting: dict[str, AttemptState] = {}
        """Attempts of the last copy that are at rest."""
        self._touched: set[str] = set()
        """Attempts that an event since the last copy names."""

    def build(self) -> Iterator[tuple[int, AnyEvent | Skipped, SessionState]]:
        """Fold all events and keep copies; yields after each folded event: the count so far, the event, the state."""
        state = SessionState()
        for start in range(0, len(self._events), EVERY):
            stop = min(start + EVERY, len(self._events))
            for place in range(start, stop):
                event = self._events[place]
                apply(state, event)
                self._touched.add(
                    getattr(event, "attempt", "") or getattr(event, "call", "").rsplit("/", 2)[0]
                )
                yield place + 1, event, state
            self._keep(state, stop)

    def state_after(self, count: int) -> SessionState:
        """Return the state after the first `count` events, the same that folding each of them gives."""
        nearest = bisect_right(self._counts, count) - 1
        state = copy_state(self._states[nearest])
        for event in self._events[self._counts[nearest] : count]:
            apply(state, event)
        return state

    def _keep(self, state: SessionState, count: int) -> None:
        """Keep a copy; attempts at rest that no event named since the last copy are shared with it."""
        for name in self._touched:
            self._resting.pop(name, None)
        self._touched.clear()
        self._counts.append(count)
        self._states.append(copy_state(state, shared=self._resting))
        self._resting.update(
            (attempt.attempt, attempt)
            for attempt in self._states[-1].attempts()
            if attempt.attempt not in self._resting and _rests(attempt)
        )


def copy_state(state: SessionState, *, shared: Mapping[str, AttemptState] | None = None) -> SessionState:
    """Return a copy that can be folded on without a change of the original; it has the attempts in `shared` itself."""
    shared = shared or {}
    copied = _shallow(state)
    copied.devices = {name: _shallow(device) for name, device in state.devices.items()}
    for key, instance in state.instances.items():
        copied.instances[key] = copy = _shallow(instance)
        copy.attempts = [
            shared.get(attempt.attempt) or _copy_attempt(attempt) for attempt in instance.attempts
        ]
    return copied


def _rests(attempt: AttemptState) -> bool:
    """True if only an event that names the attempt changes it."""
    return (
        attempt.evaluation is not None
        and attempt.word == "wait"
        and attempt.stage is None
        and attempt.examining is None
        and not attempt.waiting
        and not any(call.live for call in attempt.calls)
    )


def _copy_attempt(attempt: AttemptState) -> AttemptState:
    copied = _shallow(attempt)
    for place, call in enumerate(copied.calls):
        if call.live:
            copied.calls[place] = _copy_call(call)
    return copied


def _copy_call(call: CallState) -> CallState:
    copied = _shallow(call)
    copied.reasoning_words, copied.text_words = Words(call.reasoning), Words(call.text)
    return copied


class _Fields(NamedTuple):
    values: Callable[[object], tuple[Any, ...]]
    containers: tuple[int, ...]
    """Places of the fields that are lists, dictionaries or sets."""


def _fields_of(kind: type[DataclassInstance]) -> _Fields:
    fields = dataclasses.fields(kind)
    containers = [place for place, field in enumerate(fields) if field.default_factory in (list, dict, set)]
    return _Fields(attrgetter(*(field.name for field in fields)), tuple(containers))


_FIELDS = {
    kind: _fields_of(kind) for kind in (SessionState, InstanceState, AttemptState, CallState, DeviceState)
}


def _shallow(original: T) -> T:
    """Return an object of the same class with the same values, and with its own lists, dictionaries and sets."""
    kind = type(original)
    fields = _FIELDS[kind]
    values = list(fields.values(original))
    for place in fields.containers:
        values[place] = values[place].copy()
    return kind(*values)

"""Copies of a session's state that share their attempts until one of them changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .state import AttemptState, CallState, DeviceState, InstanceState, SessionState, Words

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", SessionState, InstanceState, AttemptState, CallState, DeviceState)


def copy_state(state: SessionState) -> SessionState:
    """Returns a copy; both states can be folded on without a change of the other.

    They share all attempts, so neither owns one: the fold copies an attempt before it changes it.
    """
    state.owned.clear()
    copied = _shallow(state)
    copied.devices = {name: _shallow(device) for name, device in state.devices.items()}
    copied.instances = {key: _shallow(instance) for key, instance in state.instances.items()}
    return copied


def own_attempt(state: SessionState, instance: InstanceState, place: int) -> AttemptState:
    """Returns the attempt at a place of an instance, to be changed: a copy of its own if other states share it."""
    attempt = instance.attempts[place]
    if attempt.attempt not in state.owned:
        attempt = instance.attempts[place] = _copy_attempt(attempt)
        state.owned.add(attempt.attempt)
    return attempt


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

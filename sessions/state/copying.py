"""Copies of a session's state that share their attempts until one of them changes."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

from .state import AttemptState, CallState, DeviceState, InstanceState, SessionState, Words

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
            copied.calls[place] = own = _shallow(call)
            own.streamed = {kind: Words(str(words)) for kind, words in call.streamed.items()}
    return copied


def _shallow(original: T) -> T:
    """Return an object of the same class with the same values, and with its own lists, dictionaries and sets."""
    values = {field.name: getattr(original, field.name) for field in dataclasses.fields(original)}
    own = {name: value.copy() for name, value in values.items() if isinstance(value, list | dict | set)}
    return type(original)(**values | own)

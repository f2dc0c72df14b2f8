"""Bases of events: what every event holds, and which are on disk before anything acts on them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from harness import Evaluation
from sessions.settings import SCHEMA, Schema, Seconds


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Fields of every event; the journal sets them when it writes the event."""

    seq: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)] = 0
    """1, 2, 3, ... in a session: the total order."""
    wall: Seconds = 0.0
    """Seconds since the epoch, UTC."""
    mono: Seconds = 0.0
    """Seconds since this engine process started, from a monotonic clock; durations use it."""
    schema: Schema = SCHEMA


class DurableEvent(Event, frozen=True, kw_only=True):
    """An event that is on disk (fsync) before anything acts on it: what it says is never paid or asked for again."""


class JudgedEvent(DurableEvent, frozen=True, kw_only=True):
    """The judge's result for an attempt or for a baseline."""

    evaluation: Evaluation
    """A verdict that is not `counted` says why there is no result."""
    device_s: float = 0.0
    """Seconds in which the judge held a device for it."""

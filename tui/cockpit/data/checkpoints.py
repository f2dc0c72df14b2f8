"""The state after any number of a session's events, from copies that are kept on the way.

A jump folds on from the nearest copy before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from sessions.events import AnyEvent
from sessions.journal.codec import Skipped
from sessions.state.copying import copy_state
from sessions.state.folding import apply
from sessions.state.state import SessionState

EVERY = 2500
"""Events between two copies. A jump folds fewer, which takes some 10 ms."""


class Checkpoints:
    """Folds a session's events from the first to the last, and jumps to any of them afterwards."""

    def __init__(self, events: Sequence[AnyEvent | Skipped]) -> None:
        self._events = events
        self._counts = [0]
        self._states = [SessionState()]

    def build(self) -> Iterator[tuple[int, AnyEvent | Skipped, SessionState]]:
        """Fold all events and keep copies; yields after each folded event: the count so far, the event, the state."""
        state = SessionState()
        for start in range(0, len(self._events), EVERY):
            stop = min(start + EVERY, len(self._events))
            for place in range(start, stop):
                event = self._events[place]
                apply(state, event)
                yield place + 1, event, state
            self._counts.append(stop)
            self._states.append(copy_state(state))

    def state_after(self, count: int) -> SessionState:
        """Return the state after the first `count` events, the same that folding each of them gives."""
        nearest = bisect_right(self._counts, count) - 1
        state = copy_state(self._states[nearest])
        for event in self._events[self._counts[nearest] : count]:
            apply(state, event)
        return state

"""Waits of instances for a decision of a person, in manual review."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from sessions.events import DecisionMade, Event


class Decisions:
    """The first decision about each attempt: the waiting instance acts on it.

    A later decision or undo changes only which kernels are accepted. It does not change the run of the instance, so a
    resumed session makes the same steps.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._first: dict[str, DecisionMade] = {}
        self._waiting: dict[str, asyncio.Event] = {}
        for event in events:
            if isinstance(event, DecisionMade):
                self.made(event)

    def made(self, decision: DecisionMade) -> None:
        """Record a decision; the instance that waits for it continues."""
        self._first.setdefault(decision.attempt, decision)
        if decision.attempt in self._waiting:
            self._waiting[decision.attempt].set()

    def about(self, attempt: str) -> DecisionMade | None:
        """Returns the first decision about an attempt; `None` if there is none."""
        return self._first.get(attempt)

    async def wait(self, attempt: str) -> DecisionMade:
        """Wait for the first decision about an attempt and return it."""
        if attempt not in self._first:
            await self._waiting.setdefault(attempt, asyncio.Event()).wait()
        return self._first[attempt]

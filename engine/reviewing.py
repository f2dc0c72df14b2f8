"""Where instances wait for people."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from sessions.events import DecisionMade, Event


class Decisions:
    """The first decision about each attempt: what a waiting instance acts on.

    What a person decides or takes back later changes what is accepted, not what the instance has done since; so a
    resumed session goes the same way again.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._first: dict[str, DecisionMade] = {}
        self._waiting: dict[str, asyncio.Event] = {}
        for event in events:
            if isinstance(event, DecisionMade):
                self.made(event)

    def made(self, decision: DecisionMade) -> None:
        """A person decided; whoever waits for it goes on."""
        self._first.setdefault(decision.attempt, decision)
        if decision.attempt in self._waiting:
            self._waiting[decision.attempt].set()

    def about(self, attempt: str) -> DecisionMade | None:
        """The first decision about an attempt, where there is one."""
        return self._first.get(attempt)

    async def wait(self, attempt: str) -> DecisionMade:
        """The first decision about an attempt, however long a person takes."""
        if attempt not in self._first:
            await self._waiting.setdefault(attempt, asyncio.Event()).wait()
        return self._first[attempt]

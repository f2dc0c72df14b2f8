"""Waits of instances for a person: for a command, and in manual review for a decision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from sessions.events import DecisionMade, Event

T = TypeVar("T")


class Changes:
    """Announces that the state of the session changed in a way that someone may wait for."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

        self.closed = False
        """True when no instance will start any more."""

    def announce(self) -> None:
        """Wake everyone who waits."""
        self._next.set()
        self._next = asyncio.Event()

    async def next(self) -> None:
        """Wait for the next announcement."""
        await self._next.wait()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until an announcement after which the condition holds; returns at once if it holds now."""
        while not condition():
            await self._next.wait()


async def run_until(
    work: Coroutine[Any, Any, T], condition: Callable[[], bool], changes: Changes
) -> T | None:
    """Run work to its end and return its result; `None` if it was cancelled, because the condition holds."""
    if condition():
        work.close()
        return None
    running = asyncio.create_task(work)
    waiting = asyncio.create_task(changes.until(condition))
    try:
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            waiting.result()  # raises an error of the condition
            running.cancel()
            await asyncio.wait({running})
        return None if running.cancelled() else running.result()
    finally:
        for task in (running, waiting):
            task.cancel()
        await asyncio.wait({running, waiting})


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

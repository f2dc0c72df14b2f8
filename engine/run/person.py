"""Waits of instances for a person's commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

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
